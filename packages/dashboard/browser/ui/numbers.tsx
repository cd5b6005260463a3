import { Anchor, Paper, SimpleGrid, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';

export interface Figure {
  label: string;
  value: ReactNode;
  /** What it means, where the name does not say it. */
  note?: string;
  /** Where it is looked into. */
  href?: string;
}

export const Numbers = ({ of, label }: { of: Figure[]; label: string }): ReactNode => (
  <SimpleGrid cols={{ base: 2, md: of.length === 5 ? 5 : 4 }} spacing="sm" role="group" aria-label={label}>
    {of.map((figure) => (
      <Paper key={figure.label} withBorder p="md">
        <Text size="sm" c="dimmed">
          {figure.href === undefined ? (
            figure.label
          ) : (
            <Anchor component={Link} href={figure.href} inherit>
              {figure.label}
            </Anchor>
          )}
        </Text>
        <Text size="xl" fw={700} className="figure">
          {figure.value ?? '…'}
        </Text>
        {figure.note === undefined ? null : (
          <Text size="xs" c="dimmed">
            {figure.note}
          </Text>
        )}
      </Paper>
    ))}
  </SimpleGrid>
);
