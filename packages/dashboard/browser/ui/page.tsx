import { Group, Stack, Text, Title } from '@mantine/core';
import { useIsFetching, useQueryClient } from '@tanstack/react-query';
import type { QueryFilters } from '@tanstack/react-query';
import { useEffect, useLayoutEffect, useState } from 'react';
import type { ReactNode } from 'react';
import type { CallName } from '../api/address.ts';
import { InBar } from './bar.tsx';
import { CurlButton } from './copy.tsx';
import { Loading } from './states.tsx';

/** The head of a screen: its name (also the window's title), the API call behind it, and the actions of the whole page. */
export function Page(props: {
  title: string;
  /** What is copied as curl. */
  call: readonly [name: CallName, input: Record<string, unknown>];
  actions?: ReactNode;
  /** One quiet line below the name. */
  about?: ReactNode;
  /** The name is a fact of the machine, such as an address. */
  mono?: boolean;
  children: ReactNode;
}): ReactNode {
  const [name, input] = props.call;
  useEffect(() => {
    document.title = `${props.title} · Parley`;
  }, [props.title]);
  const settled = useSettled();
  return (
    <Stack gap="lg" className={settled ? undefined : 'unsettled'}>
      <InBar>
        <CurlButton name={name} input={input} />
      </InBar>
      {settled ? null : (
        <div className="settling">
          <Loading what="the page" />
        </div>
      )}
      <Group justify="space-between" align="flex-start" gap="sm">
        <div className="page-head">
          <Title order={1} size="h2" dir="auto" className={props.mono ? 'mono' : undefined}>
            {props.title}
          </Title>
          {props.about === undefined ? null : (
            <Text c="dimmed" component="div" mt={4}>
              {props.about}
            </Text>
          )}
        </div>
        {props.actions ? <Group gap="xs">{props.actions}</Group> : null}
      </Group>
      {props.children}
    </Stack>
  );
}

/** Milliseconds after which a page is shown with the data that it has. */
const slowMs = 1_500;

/**
 * Whether everything that the page asks for first has come. Until then it is not shown: parts that come one after the
 * other would push each other around.
 */
function useSettled(): boolean {
  const client = useQueryClient();
  const asking = useIsFetching(firstTime);
  const here = (): boolean => client.getQueryCache().findAll(firstTime).length === 0;
  // All of it may have come before the page; its parts may ask for more as they are drawn.
  const [settled, setSettled] = useState(here);
  useLayoutEffect(() => setSettled(here()), [client]);
  // What comes may ask for more, such as names of people: that has begun once all effects have run.
  useEffect(() => {
    const timer = setTimeout(() => {
      if (client.isFetching(firstTime) === 0) setSettled(true);
    });
    return () => clearTimeout(timer);
  }, [client, asking]);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(true), slowMs);
    return () => clearTimeout(timer);
  }, []);
  return settled;
}

const firstTime: QueryFilters = { predicate: ({ state }) => state.status === 'pending' };

export const Section = (props: { title: string; actions?: ReactNode; children: ReactNode }): ReactNode => (
  <Stack gap="sm" component="section" aria-label={props.title}>
    <Group justify="space-between">
      <Title order={2} size="h4">
        {props.title}
      </Title>
      <Group gap="xs">{props.actions}</Group>
    </Group>
    {props.children}
  </Stack>
);
