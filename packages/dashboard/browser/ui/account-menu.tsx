import { Menu, UnstyledButton, useMantineColorScheme } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import CheckIcon from 'lucide-react/icons/check';
import MoreIcon from 'lucide-react/icons/ellipsis';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import { call } from '../api/call.ts';
import { sessionKey } from '../api/session.ts';
import type { Session } from '../api/session.ts';
import { Icon } from './icon.tsx';
import { Avatar } from './people.tsx';

export function AccountMenu({ session }: { session: Session }): ReactNode {
  const client = useQueryClient();
  const { colorScheme, setColorScheme } = useMantineColorScheme();
  const name = session.account.name || session.account.email;
  const signOut = async (): Promise<void> => {
    await call('session.delete', {}, null).catch(() => undefined);
    client.setQueryData(sessionKey, null);
    client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== sessionKey[0] });
  };
  return (
    <Menu position="top-start" width={220} withinPortal>
      <Menu.Target>
        <UnstyledButton className="account-button">
          <Avatar id={session.account.id} name={name} />
          <span>{name}</span>
          <Icon of={MoreIcon} />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{session.account.email}</Menu.Label>
        <Menu.Item component={Link} href="/account">
          Your account
        </Menu.Item>
        <Menu.Divider />
        {(['light', 'dark', 'auto'] as const).map((scheme) => (
          <Menu.Item
            key={scheme}
            onClick={() => setColorScheme(scheme)}
            aria-checked={colorScheme === scheme}
            role="menuitemradio"
            rightSection={colorScheme === scheme ? <Icon of={CheckIcon} /> : null}
          >
            {scheme === 'auto'
              ? 'Colours of the system'
              : `${scheme[0]!.toUpperCase()}${scheme.slice(1)} colours`}
          </Menu.Item>
        ))}
        <Menu.Divider />
        <Menu.Item onClick={() => void signOut()}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
