import { Table } from '@mantine/core';
import type { ReactNode } from 'react';

/** Names and values of one thing. */
export const Facts = ({ of, label }: { of: [string, ReactNode][]; label: string }): ReactNode => (
  <Table aria-label={label} layout="fixed">
    <Table.Tbody>
      {of.map(([name, value]) => (
        <Table.Tr key={name}>
          <Table.Th scope="row" w={{ base: 120, sm: 200 }}>
            {name}
          </Table.Th>
          <Table.Td style={{ overflowWrap: 'anywhere' }}>{value}</Table.Td>
        </Table.Tr>
      ))}
    </Table.Tbody>
  </Table>
);

/** The same, narrow: beside something larger. */
export const Pairs = ({ of }: { of: [string, ReactNode][] }): ReactNode => (
  <dl className="pairs">
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);
