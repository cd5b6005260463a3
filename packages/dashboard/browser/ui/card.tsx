import { Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';
import { LeafPattern, Wordmark } from './mark.tsx';

/** The frame of the screens for people who are not signed in. */
export function Card(props: { title: string; about?: string; children: ReactNode }): ReactNode {
  useEffect(() => {
    document.title = `${props.title} · Parley`;
  }, [props.title]);
  return (
    <div className="cover">
      <LeafPattern />
      <main>
        <Stack gap="lg">
          <Wordmark height={37} />
          <div>
            <Title order={1}>{props.title}</Title>
            {props.about === undefined ? null : <Text c="dimmed">{props.about}</Text>}
          </div>
          {props.children}
        </Stack>
      </main>
    </div>
  );
}
