import { Modal, TextInput } from '@mantine/core';
import { useDebouncedValue } from '@mantine/hooks';
import ConversationIcon from 'lucide-react/icons/messages-square';
import DeliveryIcon from 'lucide-react/icons/mail-question-mark';
import LogIcon from 'lucide-react/icons/scroll-text';
import SearchIcon from 'lucide-react/icons/search';
import type { LucideIcon } from 'lucide-react/types';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import type { KeyboardEvent, ReactNode } from 'react';
import { useLocation } from 'wouter';
import { call } from '../api/call.ts';
import { areas } from '../areas.ts';
import { Icon } from './icon.tsx';
import { Avatar, namesOf } from './people.tsx';

/** Ctrl K: finds pages, users and conversations, and opens a message or a request by its id. */

interface Found {
  href: string;
  label: string;
  kind: string;
  icon: ReactNode;
}

const waitMs = 150;
const most = 6;

const pageEntries = (env: string, text: string): Found[] =>
  areas
    .filter(({ title }) => title.toLowerCase().includes(text.toLowerCase()))
    .map(({ path, title, icon, everywhere }) => ({
      href: everywhere ? path : `/${env}${path}`,
      label: title,
      kind: 'page',
      icon: <Icon of={icon} />,
    }));

/** What an id names by its beginning. */
function idEntries(env: string, text: string): Found[] {
  const entry = (path: string, label: string, kind: string, icon: LucideIcon): Found => ({
    href: `/${env}${path}`,
    label,
    kind,
    icon: <Icon of={icon} />,
  });
  const id = encodeURIComponent(text);
  if (text.startsWith('msg_'))
    return [entry(`/delivery?messageId=${id}`, `Did ${text} arrive?`, 'message', DeliveryIcon)];
  if (text.startsWith('req_'))
    return [entry(`/logs?requestId=${id}`, `The log of ${text}`, 'request', LogIcon)];
  if (text.startsWith('conv_'))
    return [entry(`/conversations/${id}`, text, 'conversation', ConversationIcon)];
  return [];
}

async function look(env: string, text: string, signal: AbortSignal): Promise<Found[]> {
  const [byName, byId, conversations] = await Promise.all([
    call('users.list', { namePrefix: text, limit: most }, env, signal),
    call('users.list', { prefix: text, limit: most }, env, signal),
    call('explorer.conversations', { query: text, limit: most }, env, signal),
  ]);
  const people = new Map([...byName.data, ...byId.data].map((user) => [user.id, user]));
  return [
    ...[...people.values()].slice(0, most).map((user) => ({
      href: `/${env}/users/${encodeURIComponent(user.id)}`,
      label: user.name ?? user.id,
      kind: 'user',
      icon: <Avatar id={user.id} name={user.name ?? user.id} small />,
    })),
    ...conversations.data.map((item) => ({
      href: `/${env}/conversations/${item.id}`,
      label:
        item.name ??
        namesOf(
          item.people.map((person) => person.name ?? person.id),
          item.memberCount,
        ),
      kind: 'conversation',
      icon: <Icon of={ConversationIcon} />,
    })),
  ];
}

export default function Palette({ env, close }: { env: string; close: () => void }): ReactNode {
  const [, navigate] = useLocation();
  const [typed, setTyped] = useState('');
  const [at, setAt] = useState(0);
  const id = useId();
  const text = typed.trim();
  const [asked] = useDebouncedValue(text, waitMs);
  const { data: things = [] } = useQuery({
    queryKey: [env, 'palette', asked],
    queryFn: ({ signal }) => look(env, asked, signal),
    enabled: asked !== '',
  });
  const found = [...idEntries(env, text), ...pageEntries(env, text), ...(text === '' ? [] : things)];
  const chosen = Math.min(at, found.length - 1);
  const go = (entry: Found | undefined): void => {
    if (!entry) return;
    close();
    navigate(entry.href);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') return go(found[chosen]);
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || found.length === 0) return;
    event.preventDefault();
    setAt((chosen + by + found.length) % found.length);
  };
  return (
    <Modal opened onClose={close} withCloseButton={false} padding="xs" aria-label="Find or do" yOffset="12vh">
      <TextInput
        aria-label="Find or do"
        placeholder="A page, a user, a conversation, an id"
        leftSection={<Icon of={SearchIcon} />}
        value={typed}
        onChange={(event) => {
          setTyped(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={press}
        role="combobox"
        aria-expanded
        aria-controls={id}
        aria-activedescendant={chosen < 0 ? undefined : `${id}-${chosen}`}
        autoComplete="off"
        data-autofocus
      />
      <div id={id} role="listbox" aria-label="Found" className="palette">
        {found.map((entry, index) => (
          <div
            key={`${entry.kind} ${entry.href}`}
            id={`${id}-${index}`}
            role="option"
            aria-selected={index === chosen}
            className="palette-item"
            onPointerMove={() => setAt(index)}
            onClick={() => go(entry)}
          >
            {entry.icon}
            <span dir="auto">{entry.label}</span>
            <small>{entry.kind}</small>
          </div>
        ))}
      </div>
      {found.length === 0 ? <p className="palette-none">No results.</p> : null}
    </Modal>
  );
}
