import { Group, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import type { PointerEvent, ReactNode } from 'react';
import { compact, plain, roundUp, useReading, Values } from './readings.tsx';
import type { Series } from './readings.tsx';

/** Lines over time, drawn as SVG. */

export interface ChartLine<T> extends Series<T> {
  /** A class of parts.css: line-1 to line-3. */
  tone: 1 | 2 | 3;
}

const size = { height: 180, left: 40, right: 6, top: 10, bottom: 22 };
const plotHeight = size.height - size.top - size.bottom;

export function Chart<T extends { t: string }>(props: {
  title: string;
  rows: readonly T[];
  lines: ChartLine<T>[];
  /** How a step is called. */
  step: (t: string) => string;
}): ReactNode {
  const { rows, lines, step } = props;
  const { ref, width } = useElementSize();
  const plotWidth = Math.max(0, width - size.left - size.right);
  const last = rows.length - 1;
  const { at, read, press } = useReading(last);
  const top = roundUp(Math.max(0, ...rows.flatMap((row) => lines.map((line) => line.value(row)))));
  const x = (index: number): number => size.left + (last < 1 ? 0 : (index / last) * plotWidth);
  const y = (value: number): number => size.top + plotHeight * (1 - value / top);
  const chosen = at === null ? undefined : rows[at];

  const point = (event: PointerEvent<SVGSVGElement>): void => {
    const inside = event.clientX - event.currentTarget.getBoundingClientRect().left - size.left;
    read(Math.round((inside / Math.max(1, plotWidth)) * last));
  };
  return (
    <figure className="chart" ref={ref}>
      <Group justify="space-between" gap="xs">
        <Text component="figcaption" fw={600}>
          {props.title}
        </Text>
        <Group gap="md">
          {lines.map((line) => (
            <Text key={line.label} size="sm" className={`key key-${line.tone}`}>
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
        onPointerLeave={() => read(null)}
        onKeyDown={press}
        onBlur={() => read(null)}
      >
        {[0, top / 2, top].map((value) => (
          <g key={value}>
            <line
              className={value === 0 ? 'axis' : 'grid'}
              x1={size.left}
              x2={width - size.right}
              y1={y(value)}
              y2={y(value)}
            />
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
      <Values title={props.title} rows={rows} series={lines} step={step} />
    </figure>
  );
}
