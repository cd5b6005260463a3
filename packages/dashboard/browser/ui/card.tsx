import { Center, Paper, Stack, Text, Title } from '@mantine/core';
import { useEffect } from 'react';
import type { ReactNode } from 'react';

/** The frame of the screens for people who are not signed in. */
export function Card(props: { title: string; children: ReactNode }): ReactNode {
  useEffect(() => {
    document.title = `${props.title} · Parley`;
  }, [props.title]);
  return (
    <Center mih="100vh" p="md" component="main" className="backdrop">
      <Stack w="100%" maw={420} gap="sm">
        <Text fw={700} size="lg">
          Parley
        </Text>
        <Paper withBorder p="xl" shadow="sm" radius="md">
          <Stack>
            <Title order={1} size="h3">
              {props.title}
            </Title>
            {props.children}
          </Stack>
        </Paper>
      </Stack>
    </Center>
  );
}
