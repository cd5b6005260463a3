import { Anchor, Button, Text } from '@mantine/core';
import { lazy, Suspense } from 'react';
import type { ReactNode } from 'react';
import { Link, Redirect, Route, Switch, useParams } from 'wouter';
import { areas } from './areas.ts';
import type { Session } from './api/session.ts';
import { useSession } from './api/session.ts';
import { Reauth } from './api/reauth.tsx';
import { Shell } from './shell.tsx';
import { Card } from './ui/card.tsx';
import { Empty, Loading } from './ui/states.tsx';

const NewEnvironment = lazy(() => import('./pages/new-environment.tsx'));
const SignIn = lazy(() => import('./pages/sign-in.tsx'));
const Linked = lazy(() => import('./pages/links.tsx'));

/** Chooses the screen of an address. Users who are not signed in see the sign-in page at the same address. */
export const App = (): ReactNode => (
  <Suspense fallback={<Loading what="the page" />}>
    <Switch>
      {(['forgot', 'sign-up', 'reset', 'invitation'] as const).map((screen) => (
        <Route key={screen} path={`/${screen}`}>
          <Linked screen={screen} />
        </Route>
      ))}
      <Route>
        <SignedIn />
      </Route>
    </Switch>
  </Suspense>
);

function SignedIn(): ReactNode {
  const session = useSession();
  if (session.isPending) return <Loading what="your session" />;
  if (session.data === undefined)
    return (
      <Card title={session.error?.message ?? 'No session'}>
        <Text c="dimmed">This page tries again by itself. No sent message is lost.</Text>
        <Button onClick={() => void session.refetch()}>Try again</Button>
      </Card>
    );
  if (!session.data) return <SignIn />;
  return (
    <>
      <Screens session={session.data} />
      <Reauth />
    </>
  );
}

function Screens({ session }: { session: Session }): ReactNode {
  const first = session.organizations.flatMap((org) => org.environments)[0];
  return (
    <Switch>
      <Route path="/">
        {first ? (
          <Redirect to={`/${first.id}`} replace />
        ) : (
          <Shell session={session} env={null}>
            <NewEnvironment session={session} />
          </Shell>
        )}
      </Route>
      <Route path="/new-environment">
        <Shell session={session} env={null}>
          <NewEnvironment session={session} />
        </Shell>
      </Route>
      {areas.map((area) => (
        <Route
          key={area.path}
          path={area.path === '' ? '/:env' : `${area.everywhere ? '' : '/:env'}${area.path}/*?`}
        >
          <Screen session={session} page={<area.page />} />
        </Route>
      ))}
      <Route>
        <Shell session={session} env={null}>
          <Empty title="Page not found" action={<ToOverview />} />
        </Shell>
      </Route>
    </Switch>
  );
}

function Screen({ session, page }: { session: Session; page: ReactNode }): ReactNode {
  const env = useParams<{ env?: string }>().env ?? null;
  const known =
    env === null || session.organizations.some((org) => org.environments.some((e) => e.id === env));
  return (
    <Shell session={session} env={env}>
      {known ? (
        page
      ) : (
        <Empty title="Environment not found" action={<ToOverview />}>
          It does not exist, or it belongs to an organization that you are not in.
        </Empty>
      )}
    </Shell>
  );
}

const ToOverview = (): ReactNode => (
  <Anchor component={Link} href="/">
    To the overview
  </Anchor>
);
