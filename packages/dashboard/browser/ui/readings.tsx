import { Table } from '@mantine/core';
import { useState } from 'react';
import type { KeyboardEvent, ReactNode } from 'react';
import { plain } from './figures.ts';

/** What all charts have in common: one step is read by pointer or arrow keys, and all numbers stand in a table. */

/** A round number at or above the highest value. */
export function roundUp(highest: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(highest, 1)));
  return ([1, 2, 5, 10].find((step) => step * unit >= highest) ?? 10) * unit;
}

export interface Series<T> {
  label: string;
  value: (row: T) => number;
}

/** Which step is read; null: none. */
export function useReading(last: number): {
  at: number | null;
  read: (index: number | null) => void;
  press: (event: KeyboardEvent) => void;
} {
  const [at, setAt] = useState<number | null>(null);
  const read = (index: number | null): void =>
    setAt(index === null ? null : Math.min(last, Math.max(0, index)));
  return {
    at,
    read,
    press: (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by === undefined) return;
      event.preventDefault();
      read((at ?? last - by) + by);
    },
  };
}

export const Values = <T extends { t: string }>(props: {
  title: string;
  rows: readonly T[];
  series: readonly Series<T>[];
  step: (t: string) => string;
}): ReactNode => {
  // Hundreds of cells that nobody sees: they are made when somebody looks.
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>As a table</summary>
      {open ? (
        <div className="scroll" tabIndex={0} role="region" aria-label={`${props.title} as a table`}>
          <Table aria-label={props.title} withRowBorders={false} verticalSpacing={2}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Time</Table.Th>
                {props.series.map((series) => (
                  <Table.Th key={series.label}>{series.label}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {props.rows.map((row) => (
                <Table.Tr key={row.t}>
                  <Table.Td>{props.step(row.t)}</Table.Td>
                  {props.series.map((series) => (
                    <Table.Td key={series.label}>{plain(series.value(row))}</Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      ) : null}
    </details>
  );
};
