import UpDownIcon from 'lucide-react/icons/chevrons-up-down';
import type { ReactNode } from 'react';
import type { Session } from '../api/session.ts';
import { Icon } from './icon.tsx';
import { Menu, MenuLink } from './menu.tsx';

type Organization = Session['organizations'][number];
export type Environment = Organization['environments'][number];

const kindOf = (env: Environment): string => {
  const kind = env.kind === 'production' ? 'Production' : 'Development';
  return env.status === 'suspended' ? `${kind}, suspended` : kind;
};

/** The environment of the pages, and the menu to choose another. */
export function EnvironmentMenu(props: {
  organizations: Organization[];
  current: Environment | undefined;
}): ReactNode {
  const { current, organizations } = props;
  const mayCreate = organizations.some((org) => org.role !== 'viewer');
  return (
    <Menu
      className="env-button"
      button={
        <>
          <span className="avatar avatar-env" aria-hidden>
            {(current?.name[0] ?? '·').toUpperCase()}
          </span>
          <span>
            <span className="sr">Environment: </span>
            {current?.name ?? 'none chosen'}
            {current ? (
              <span className="env-kind" data-kind={current.kind}>
                {kindOf(current)}
              </span>
            ) : null}
          </span>
          <Icon of={UpDownIcon} />
        </>
      }
    >
      {organizations.map((org) => (
        <div key={org.id} role="group" aria-label={org.name}>
          <small aria-hidden>{org.name}</small>
          {org.environments.map((env) => (
            <MenuLink key={env.id} href={`/${env.id}`} chosen={env.id === current?.id}>
              {env.name}
              <span className="env-kind" data-kind={env.kind}>
                {kindOf(env)}
              </span>
            </MenuLink>
          ))}
        </div>
      ))}
      {mayCreate ? (
        <div role="group">
          <MenuLink href="/new-environment">New environment</MenuLink>
        </div>
      ) : null}
    </Menu>
  );
}
