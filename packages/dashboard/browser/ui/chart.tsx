import { Group, Table, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { useState } from 'react';
import type { KeyboardEvent, PointerEvent, ReactNode } from 'react';

/** Lines over time, drawn as SVG. Arrow keys and the pointer read single values; the same numbers stand below as a table. */

export interface ChartLine<T> {
  label: string;
  value: (row: T) => number;
  /** A class of style.css: line-1 to line-3. */
  tone: 1 | 2 | 3;
}

const size = { height: 180, left: 40, right: 6, top: 10, bottom: 22 };
const plotHeight = size.height - size.top - size.bottom;

/** A round number at or above the highest value. */
function roundUp(highest: number): number {
  const unit = 10 ** Math.floor(Math.log10(Math.max(highest, 1)));
  return ([1, 2, 5, 10].find((step) => step * unit >= highest) ?? 10) * unit;
}

export const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const plain = new Intl.NumberFormat(undefined, { maximumFractionDigits: 2 });

export function Chart<T extends { t: string }>(props: {
  title: string;
  rows: readonly T[];
  lines: ChartLine<T>[];
  /** How a step is called. */
  step: (t: string) => string;
}): ReactNode {
  const { rows, lines, step } = props;
  const [at, setAt] = useState<number | null>(null);
  const { ref, width } = useElementSize();
  const plotWidth = Math.max(0, width - size.left - size.right);
  const last = rows.length - 1;
  const top = roundUp(Math.max(0, ...rows.flatMap((row) => lines.map((line) => line.value(row)))));
  const x = (index: number): number => size.left + (last < 1 ? 0 : (index / last) * plotWidth);
  const y = (value: number): number => size.top + plotHeight * (1 - value / top);
  const chosen = at === null ? undefined : rows[at];

  const point = (event: PointerEvent<SVGSVGElement>): void => {
    const box = event.currentTarget.getBoundingClientRect();
    const inside = event.clientX - box.left - size.left;
    setAt(Math.min(last, Math.max(0, Math.round((inside / Math.max(1, plotWidth)) * last))));
  };
  const press = (event: KeyboardEvent): void => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    setAt(Math.min(last, Math.max(0, (at ?? last - by) + by)));
  };
  return (
    <figure className="chart" ref={ref}>
      <Group justify="space-between" gap="xs">
        <Text component="figcaption" fw={600} size="sm">
          {props.title}
        </Text>
        <Group gap="md">
          {lines.map((line) => (
            <Text key={line.label} size="sm" className={`key line-${line.tone}`}>
              {line.label}
              {chosen ? `: ${plain.format(line.value(chosen))}` : ''}
            </Text>
          ))}
          <Text size="sm" c="dimmed" aria-live="polite">
            {chosen ? step(chosen.t) : ''}
          </Text>
        </Group>
      </Group>
      <svg
        width={width}
        height={size.height}
        role="img"
        aria-label={`${props.title}: ${lines.map((line) => line.label).join(', ')}. Arrow keys read single values.`}
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => setAt(null)}
        onKeyDown={press}
        onBlur={() => setAt(null)}
      >
        {[0, top / 2, top].map((value) => (
          <g key={value}>
            <line className="grid" x1={size.left} x2={width - size.right} y1={y(value)} y2={y(value)} />
            <text className="tick" x={size.left - 6} y={y(value) + 3} textAnchor="end">
              {compact.format(value)}
            </text>
          </g>
        ))}
        {rows.length > 1 ? (
          <>
            <text className="tick" x={size.left} y={size.height - 4}>
              {step(rows[0]!.t)}
            </text>
            <text className="tick" x={width - size.right} y={size.height - 4} textAnchor="end">
              {step(rows[last]!.t)}
            </text>
          </>
        ) : null}
        {at === null ? null : <line className="grid" x1={x(at)} x2={x(at)} y1={size.top} y2={y(0)} />}
        {lines.map((line) => (
          <polyline
            key={line.label}
            className={`line line-${line.tone}`}
            points={rows.map((row, index) => `${x(index)},${y(line.value(row))}`).join(' ')}
          />
        ))}
      </svg>
      <details>
        <summary>As a table</summary>
        <div className="scroll" tabIndex={0} role="region" aria-label={`${props.title} as a table`}>
          <Table aria-label={props.title} withRowBorders={false} verticalSpacing={2}>
            <Table.Thead>
              <Table.Tr>
                <Table.Th>Time</Table.Th>
                {lines.map((line) => (
                  <Table.Th key={line.label}>{line.label}</Table.Th>
                ))}
              </Table.Tr>
            </Table.Thead>
            <Table.Tbody>
              {rows.map((row) => (
                <Table.Tr key={row.t}>
                  <Table.Td>{step(row.t)}</Table.Td>
                  {lines.map((line) => (
                    <Table.Td key={line.label}>{plain.format(line.value(row))}</Table.Td>
                  ))}
                </Table.Tr>
              ))}
            </Table.Tbody>
          </Table>
        </div>
      </details>
    </figure>
  );
}
