import { Alert, UnstyledButton } from '@mantine/core';
import { useDisclosure, useHotkeys } from '@mantine/hooks';
import AlertIcon from 'lucide-react/icons/triangle-alert';
import MenuIcon from 'lucide-react/icons/menu';
import SearchIcon from 'lucide-react/icons/search';
import { lazy, Suspense } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Session } from './api/session.ts';
import { useAway } from './api/away.ts';
import type { Area } from './areas.ts';
import { areaOf, areas } from './areas.ts';
import { AccountMenu } from './ui/account-menu.tsx';
import { BarSlot } from './ui/bar.tsx';
import { Boundary } from './ui/boundary.tsx';
import { EnvironmentMenu } from './ui/environment-menu.tsx';
import type { Environment } from './ui/environment-menu.tsx';
import { Icon } from './ui/icon.tsx';
import { Wordmark } from './ui/mark.tsx';
import { Loading } from './ui/states.tsx';

const Palette = lazy(() => import('./ui/palette.tsx'));

/** Where the menu leads on pages that concern no environment. */
let visited: string | null = null;

/** The frame of every screen: the menus of environments, areas and the account. */
export function Shell(props: { session: Session; env: string | null; children: ReactNode }): ReactNode {
  const [opened, menu] = useDisclosure(false);
  const [finding, find] = useDisclosure(false);
  const [location] = useLocation();
  const { organizations } = props.session;
  const environments = organizations.flatMap((org) => org.environments);
  if (environments.some(({ id }) => id === props.env)) visited = props.env;
  const here = environments.find(({ id }) => id === props.env);
  const shown = here ?? environments.find(({ id }) => id === visited) ?? environments[0];
  useHotkeys([['mod+K', find.toggle]], []);
  useHotkeys([['Escape', menu.close]]);
  const area = areaOf(location, props.env);
  return (
    <div className="shell">
      <a href="#main" className="skip-link">
        Skip to the content
      </a>
      <div className="nav" data-open={opened || undefined}>
        <Link href="/" className="wordmark">
          <Wordmark height={25} />
        </Link>
        <EnvironmentMenu organizations={organizations} current={here} />
        <nav aria-label="Areas" className="nav-areas">
          {shown ? <Areas env={shown.id} location={location} close={menu.close} /> : null}
        </nav>
        <AccountMenu session={props.session} />
      </div>
      <div className="scrim" onClick={menu.close} />
      <div className="sheet">
        <header className="bar">
          <UnstyledButton
            className="burger"
            onClick={menu.toggle}
            aria-expanded={opened}
            aria-label={opened ? 'Close the menu' : 'Open the menu'}
          >
            <Icon of={MenuIcon} size={20} />
          </UnstyledButton>
          <Where area={area} env={props.env} location={location} />
          {shown ? (
            <UnstyledButton className="find" onClick={find.open}>
              <Icon of={SearchIcon} />
              <span>Find or do</span>
              <kbd>Ctrl K</kbd>
            </UnstyledButton>
          ) : (
            <span className="find" />
          )}
          <BarSlot />
        </header>
        <Away />
        <main id="main" className="page" tabIndex={-1}>
          <div>
            {here && isOpen(here) ? (
              <Alert color="red" variant="light" mb="lg" py="xs">
                Anybody who can reach this service can act as any user of this environment: it accepts
                unsigned tokens.
              </Alert>
            ) : null}
            <Boundary key={location}>
              <Suspense fallback={<Loading what="the page" />}>{props.children}</Suspense>
            </Boundary>
          </div>
        </main>
      </div>
      {finding && shown ? (
        <Suspense fallback={null}>
          <Palette env={shown.id} close={find.close} />
        </Suspense>
      ) : null}
    </div>
  );
}

/** The area; below it, the way back to it. */
function Where(props: { area: Area | undefined; env: string | null; location: string }): ReactNode {
  const { area, env, location } = props;
  const root = area && (env === null ? area.path : `/${env}${area.path}`);
  return (
    <span className="bar-title">
      {root === undefined || root === location ? (
        (area?.title ?? 'Parley')
      ) : (
        <Link href={root}>← {area!.title}</Link>
      )}
    </span>
  );
}

function Areas({ env, location, close }: { env: string; location: string; close: () => void }): ReactNode {
  const groups = Map.groupBy(
    areas.filter((area) => area.group !== null),
    (area) => area.group!,
  );
  const entry = (area: Area): ReactNode => {
    const href = `/${env}${area.path}`;
    const active = location === href || (area.path !== '' && location.startsWith(`${href}/`));
    return (
      <Link
        key={area.path}
        href={href}
        className="nav-entry"
        aria-current={active ? 'page' : undefined}
        onClick={close}
      >
        <Icon of={area.icon} />
        {area.title}
      </Link>
    );
  };
  return [...groups].map(([group, members]) => (
    <div key={group}>
      {group === '' ? null : <h2>{group}</h2>}
      {members.map(entry)}
    </div>
  ));
}

/** Goes by itself when the service is back. */
function Away(): ReactNode {
  const away = useAway();
  return (
    <div role="status">
      {away ? (
        <div className="away">
          <Icon of={AlertIcon} />
          <span>
            The service does not answer. This page shows older data and refreshes as soon as it can.
          </span>
        </div>
      ) : null}
    </div>
  );
}

/** Unsigned tokens are accepted from anywhere. */
const isOpen = ({ local, settings }: Environment): boolean => settings.devTokens && !local;
