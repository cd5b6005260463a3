import { Anchor, Button, Group } from '@mantine/core';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { useChange, useEnv, usePages } from '../api/hooks.ts';
import { useNames } from '../api/names.ts';
import { useMay } from '../api/roles.ts';
import { ConfirmButton } from '../ui/confirm.tsx';
import { Field } from '../ui/field.tsx';
import { List } from '../ui/list.tsx';
import { Section } from '../ui/page.tsx';
import { Person } from '../ui/people.tsx';
import { Empty, Failed } from '../ui/states.tsx';
import { idsOf } from './new.tsx';

export function Members(props: { conversationId: string; lastSeq: number; group: boolean }): ReactNode {
  const { conversationId, lastSeq, group } = props;
  const env = useEnv();
  const pages = usePages('members.list', { conversationId, limit: 100 });
  const nameOf = useNames(pages.items?.map(({ userId }) => userId) ?? []);
  const remove = useChange('members.remove');
  const may = useMay('members.remove') && group;
  return (
    <Section title="Members">
      {may ? <Add conversationId={conversationId} /> : null}
      <List
        what="members"
        pages={pages}
        rowKey={(member) => member.userId}
        columns={[
          {
            title: 'User',
            cell: ({ userId }) => (
              <Anchor component={Link} href={`/${env}/users/${encodeURIComponent(userId)}`}>
                <Person id={userId} name={nameOf(userId)} />
              </Anchor>
            ),
          },
          { title: 'Role', cell: (member) => member.role },
          { title: 'Read up to', cell: (member) => `${member.lastReadSeq} of ${lastSeq}` },
          {
            title: 'Delivered up to',
            cell: (member) => `${member.lastDeliveredSeq} of ${lastSeq}`,
            wide: true,
          },
          ...(may
            ? [
                {
                  title: '',
                  cell: ({ userId }: { userId: string }) => (
                    <ConfirmButton
                      label="Remove"
                      title={`Remove ${nameOf(userId)}?`}
                      pending={remove.isPending}
                      error={remove.error}
                      onConfirm={() => remove.mutateAsync({ conversationId, userId })}
                    >
                      The conversation disappears for this person at once. Messages stay.
                    </ConfirmButton>
                  ),
                },
              ]
            : []),
        ]}
        empty={<Empty title="No members" />}
      />
    </Section>
  );
}

function Add({ conversationId }: { conversationId: string }): ReactNode {
  const [text, setText] = useState('');
  const add = useChange('members.add', { done: () => setText('') });
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        add.mutate({ conversationId, userIds: idsOf(text) });
      }}
    >
      <Group align="flex-end" gap="xs">
        <Field
          label="Add by id"
          placeholder="dave, erin"
          required
          autoComplete="off"
          value={text}
          set={setText}
        />
        <Button type="submit" variant="default" loading={add.isPending}>
          Add members
        </Button>
      </Group>
      {add.error ? <Failed error={add.error} /> : null}
    </form>
  );
}
