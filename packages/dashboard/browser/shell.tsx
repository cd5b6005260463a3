import {
  Alert,
  AppShell,
  Badge,
  Box,
  Burger,
  Group,
  NavLink,
  ScrollArea,
  Select,
  Text,
  UnstyledButton,
} from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Suspense } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Session } from './api/session.ts';
import type { Area } from './areas.ts';
import { areas } from './areas.ts';
import { AccountMenu } from './ui/account-menu.tsx';
import { Boundary } from './ui/boundary.tsx';
import { Loading } from './ui/states.tsx';

type Organization = Session['organizations'][number];
type Environment = Organization['environments'][number];

/** The frame of every screen: which environment, which area, who. */
export function Shell(props: { session: Session; env: string | null; children: ReactNode }): ReactNode {
  const [opened, { toggle, close }] = useDisclosure(false);
  const [location, navigate] = useLocation();
  const { organizations } = props.session;
  const current = organizations.flatMap((org) => org.environments).find((env) => env.id === props.env);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 210, breakpoint: 'sm', collapsed: { mobile: !opened, desktop: !current } }}
      padding={{ base: 'sm', sm: 'lg' }}
    >
      <a href="#main" className="skip-link">
        Skip to the content
      </a>
      <AppShell.Header>
        <Group h="100%" px="md" gap="sm" wrap="nowrap">
          {current ? (
            <Burger
              opened={opened}
              onClick={toggle}
              hiddenFrom="sm"
              size="sm"
              aria-expanded={opened}
              aria-label={opened ? 'Close the menu' : 'Open the menu'}
            />
          ) : null}
          <UnstyledButton component={Link} href="/" fw={700} visibleFrom="sm">
            Parley
          </UnstyledButton>
          <EnvironmentSelect organizations={organizations} current={current} go={navigate} />
          {current ? <KindBadge env={current} /> : null}
          <Box flex={1} />
          <AccountMenu session={props.session} />
        </Group>
      </AppShell.Header>
      {current ? (
        <AppShell.Navbar aria-label="Areas">
          <ScrollArea p="xs">
            <Menu env={current.id} location={location} close={close} />
          </ScrollArea>
        </AppShell.Navbar>
      ) : null}
      <AppShell.Main id="main" tabIndex={-1}>
        <Box maw={1200}>
          {current && isOpen(current) ? (
            <Alert color="red.9" variant="filled" mb="md">
              Anybody who reaches this service can be anybody in this environment: it takes unsigned tokens.
            </Alert>
          ) : null}
          <Boundary key={location}>
            <Suspense fallback={<Loading what="the page" />}>{props.children}</Suspense>
          </Boundary>
        </Box>
      </AppShell.Main>
    </AppShell>
  );
}

function Menu({ env, location, close }: { env: string; location: string; close: () => void }): ReactNode {
  const groups = Map.groupBy(
    areas.filter((area) => area.group !== null),
    (area) => area.group!,
  );
  const entry = (area: Area): ReactNode => {
    const href = `/${env}${area.path}`;
    const active = location === href || (area.path !== '' && location.startsWith(`${href}/`));
    return (
      <NavLink
        key={area.path}
        component={Link}
        href={href}
        label={area.title}
        active={active}
        variant="light"
        className="area"
        aria-current={active ? 'page' : undefined}
        onClick={close}
      />
    );
  };
  return [...groups].map(([group, members]) => (
    <Box key={group} mb="xs">
      {group === '' ? null : (
        <Text size="xs" fw={600} c="dimmed" px="sm" mt="xs" tt="uppercase" component="h2">
          {group}
        </Text>
      )}
      {members.map(entry)}
    </Box>
  ));
}

/** Unsigned tokens are accepted from anywhere. */
const isOpen = ({ local, settings }: Environment): boolean => settings.devTokens && !local;

const creates = 'new';

function EnvironmentSelect(props: {
  organizations: Organization[];
  current: Environment | undefined;
  go: (path: string) => void;
}): ReactNode {
  const mayCreate = props.organizations.some((org) => org.role !== 'viewer');
  return (
    <Select
      aria-label="Environment"
      placeholder="Environment"
      data={[
        ...props.organizations.map((org) => ({
          group: org.name,
          items: org.environments.map((env) => ({ value: env.id, label: env.name })),
        })),
        ...(mayCreate ? [{ value: creates, label: 'New environment …' }] : []),
      ]}
      value={props.current?.id ?? null}
      onChange={(id) => {
        if (id !== null) props.go(id === creates ? '/new-environment' : `/${id}`);
      }}
      allowDeselect={false}
      w={{ base: 150, sm: 220 }}
      size="sm"
    />
  );
}

const KindBadge = ({ env }: { env: Environment }): ReactNode => (
  <Group gap={6} wrap="nowrap" visibleFrom="xs">
    <Badge color={env.kind === 'production' ? 'red.9' : 'teal.9'} variant="filled" radius="sm">
      {env.kind}
    </Badge>
    {env.status === 'suspended' ? (
      <Text size="sm" fw={600}>
        suspended
      </Text>
    ) : null}
  </Group>
);
