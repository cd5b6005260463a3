import { Button, Group, NativeSelect, TextInput } from '@mantine/core';
import { useEffect, useState } from 'react';
import type { ReactNode } from 'react';
import { useSearchParams } from 'wouter';

/** Filters live in the address, so that a view can be shared. */
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

/** Those that are set. */
export function useFilters<const N extends string>(names: readonly N[]): Partial<Record<N, string>> {
  const [params] = useSearchParams();
  return Object.fromEntries(
    names.map((name) => [name, params.get(name) ?? '']).filter(([, value]) => value !== ''),
  ) as Partial<Record<N, string>>;
}

/** A text that is looked for once it is finished: with Enter, or when the field is left. */
export function FilterText(props: { name: string; label: string; placeholder?: string }): ReactNode {
  const [value, setValue] = useFilter(props.name);
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const apply = (): void => {
    if (text.trim() !== value) setValue(text.trim());
  };
  return (
    <form
      role="search"
      aria-label={props.label}
      className="filter"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
    >
      <TextInput
        label={props.label}
        placeholder={props.placeholder ?? ''}
        size="sm"
        value={text}
        onChange={(event) => setText(event.currentTarget.value)}
        onBlur={apply}
      />
    </form>
  );
}

export function FilterChoice(props: { name: string; label: string; options: [string, string][] }): ReactNode {
  const [value, setValue] = useFilter(props.name);
  return (
    <NativeSelect
      label={props.label}
      className="filter"
      size="sm"
      data={props.options.map(([option, label]) => ({ value: option, label }))}
      value={value}
      onChange={(event) => setValue(event.currentTarget.value)}
    />
  );
}

export function FilterBar({ names, children }: { names: readonly string[]; children: ReactNode }): ReactNode {
  const [params, setParams] = useSearchParams();
  return (
    <Group align="flex-end" gap="sm">
      {children}
      {names.some((name) => params.has(name)) ? (
        <Button
          variant="subtle"
          size="sm"
          onClick={() =>
            setParams((before) => {
              const next = new URLSearchParams(before);
              for (const name of names) next.delete(name);
              return next;
            })
          }
        >
          Clear
        </Button>
      ) : null}
    </Group>
  );
}
