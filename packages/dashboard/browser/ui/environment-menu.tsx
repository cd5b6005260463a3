import { Menu, UnstyledButton } from '@mantine/core';
import CheckIcon from 'lucide-react/icons/check';
import PlusIcon from 'lucide-react/icons/plus';
import UpDownIcon from 'lucide-react/icons/chevrons-up-down';
import { Fragment } from 'react';
import type { ReactNode } from 'react';
import { Link } from 'wouter';
import type { Session } from '../api/session.ts';
import { Icon } from './icon.tsx';

type Organization = Session['organizations'][number];
export type Environment = Organization['environments'][number];

const kindOf = (env: Environment): string => {
  const kind = env.kind === 'production' ? 'Production' : 'Development';
  return env.status === 'suspended' ? `${kind}, suspended` : kind;
};

/** Which environment the pages are about, and the way to another. */
export function EnvironmentMenu(props: {
  organizations: Organization[];
  current: Environment | undefined;
}): ReactNode {
  const { current, organizations } = props;
  const mayCreate = organizations.some((org) => org.role !== 'viewer');
  return (
    <Menu position="bottom-start" width={260} withinPortal>
      <Menu.Target>
        <UnstyledButton className="env-button">
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
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown mah="70vh" style={{ overflowY: 'auto' }}>
        {organizations.map((org) => (
          <Fragment key={org.id}>
            <Menu.Label>{org.name}</Menu.Label>
            {org.environments.map((env) => (
              <Menu.Item
                key={env.id}
                component={Link}
                href={`/${env.id}`}
                rightSection={env.id === current?.id ? <Icon of={CheckIcon} /> : null}
              >
                {env.name}
                <span className="env-kind" data-kind={env.kind}>
                  {kindOf(env)}
                </span>
              </Menu.Item>
            ))}
          </Fragment>
        ))}
        {mayCreate ? (
          <>
            <Menu.Divider />
            <Menu.Item component={Link} href="/new-environment" leftSection={<Icon of={PlusIcon} />}>
              New environment
            </Menu.Item>
          </>
        ) : null}
      </Menu.Dropdown>
    </Menu>
  );
}
