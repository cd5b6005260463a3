import { Button, Group, TextInput } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { useSearchParams } from 'wouter';

/** A filter that lives in the address, so that a view can be shared. */
export function useFilter(name: string): [string, (value: string) => void] {
  const [params, setParams] = useSearchParams();
  return [
    params.get(name) ?? '',
    (value) =>
      setParams((before) => {
        const next = new URLSearchParams(before);
        if (value === '') next.delete(name);
        else next.set(name, value);
        return next;
      }),
  ];
}

export function FilterText(props: { name: string; label: string; placeholder?: string }): ReactNode {
  const [value, setValue] = useFilter(props.name);
  const [text, setText] = useState(value);
  return (
    <form
      role="search"
      aria-label={props.label}
      onSubmit={(event) => {
        event.preventDefault();
        setValue(text.trim());
      }}
    >
      <Group align="flex-end" gap="xs" wrap="nowrap">
        <TextInput
          label={props.label}
          placeholder={props.placeholder ?? ''}
          value={text}
          onChange={(event) => setText(event.currentTarget.value)}
          flex={{ base: 1, sm: '0 1 320px' }}
        />
        <Button type="submit" variant="default">
          Find
        </Button>
        {value === '' ? null : (
          <Button
            variant="subtle"
            onClick={() => {
              setText('');
              setValue('');
            }}
          >
            Clear
          </Button>
        )}
      </Group>
    </form>
  );
}
