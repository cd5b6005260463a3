import { useMantineColorScheme } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import MoreIcon from 'lucide-react/icons/ellipsis';
import type { ReactNode } from 'react';
import { call } from '../api/call.ts';
import { sessionKey } from '../api/session.ts';
import type { Session } from '../api/session.ts';
import { Icon } from './icon.tsx';
import { Menu, MenuButton, MenuLink } from './menu.tsx';
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
    <Menu
      className="account-button"
      button={
        <>
          <Avatar id={session.account.id} name={name} />
          <span>{name}</span>
          <Icon of={MoreIcon} />
        </>
      }
    >
      <div role="group" aria-label={session.account.email}>
        <small aria-hidden>{session.account.email}</small>
        <MenuLink href="/account">Your account</MenuLink>
      </div>
      <div role="group" aria-label="Colours">
        {(['light', 'dark', 'auto'] as const).map((scheme) => (
          <MenuButton key={scheme} onClick={() => setColorScheme(scheme)} chosen={colorScheme === scheme}>
            {scheme === 'auto' ? 'System colours' : `${scheme[0]!.toUpperCase()}${scheme.slice(1)} colours`}
          </MenuButton>
        ))}
      </div>
      <div role="group">
        <MenuButton onClick={() => void signOut()}>Sign out</MenuButton>
      </div>
    </Menu>
  );
}
