import { Anchor, Text } from '@mantine/core';
import type { ReactNode } from 'react';
import { Link } from 'wouter';

export interface Figure {
  label: string;
  value: ReactNode;
  /** What it means, where the name does not say it. */
  note?: string | undefined;
  /** Where it is looked into. */
  href?: string;
}

export const Numbers = ({ of, label }: { of: Figure[]; label: string }): ReactNode => (
  <div className="strip" role="group" aria-label={label}>
    {of.map((figure) => (
      <div key={figure.label}>
        <Text size="sm" c="dimmed">
          {figure.href === undefined ? (
            figure.label
          ) : (
            <Anchor component={Link} href={figure.href} inherit>
              {figure.label}
            </Anchor>
          )}
        </Text>
        <div className="figure">{figure.value ?? '…'}</div>
        {figure.note === undefined ? null : (
          <Text size="xs" c="dimmed">
            {figure.note}
          </Text>
        )}
      </div>
    ))}
  </div>
);
