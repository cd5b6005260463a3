import { Group, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import type { PointerEvent, ReactNode } from 'react';
import { compact, plain, roundUp, useReading, Values } from './readings.tsx';
import type { Series } from './readings.tsx';

/** Two directions over time: what was said above the line, what was heard below it, each with its own scale. */

const size = { height: 230, left: 44, right: 6, top: 8, bottom: 22 };
const middle = size.top + (size.height - size.top - size.bottom) / 2;
const reach = middle - size.top;

export function MirroredBars<T extends { t: string }>(props: {
  title: string;
  unit: string;
  rows: readonly T[];
  up: Series<T>;
  down: Series<T>;
  step: (t: string) => string;
}): ReactNode {
  const { rows, up, down, step } = props;
  const { ref, width } = useElementSize();
  const plotWidth = Math.max(0, width - size.left - size.right);
  const { at, read, press } = useReading(rows.length - 1);
  const pitch = plotWidth / Math.max(1, rows.length);
  const bar = Math.max(1, pitch - Math.min(3, pitch / 3));
  const scales = [up, down].map((series) => roundUp(Math.max(0, ...rows.map(series.value))));
  const chosen = at === null ? undefined : rows[at];
  const point = (event: PointerEvent<SVGSVGElement>): void => {
    const inside = event.clientX - event.currentTarget.getBoundingClientRect().left - size.left;
    read(Math.floor(inside / Math.max(1, pitch)));
  };
  return (
    <figure className="chart" ref={ref}>
      <Group justify="space-between" gap="xs" mb={6}>
        <Group gap="sm" component="figcaption">
          <Text fw={600}>{props.title}</Text>
          <Text size="sm" c="dimmed">
            {props.unit}
          </Text>
        </Group>
        <Group gap="md">
          {[up, down].map((series, index) => (
            <Text key={series.label} size="sm" className={`key key-${index + 1}`}>
              {series.label}
              {chosen ? `: ${plain.format(series.value(chosen))}` : ''}
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
        aria-label={`${props.title}, ${props.unit}: ${up.label} above, ${down.label} below. Arrow keys read single values.`}
        tabIndex={0}
        onPointerMove={point}
        onPointerLeave={() => read(null)}
        onKeyDown={press}
        onBlur={() => read(null)}
      >
        {[
          [size.top, scales[0]!],
          [middle + reach, scales[1]!],
        ].map(([y, value]) => (
          <g key={y}>
            <line className="grid" x1={size.left} x2={width - size.right} y1={y} y2={y} />
            <text className="tick" x={size.left - 6} y={y! + 4} textAnchor="end">
              {compact.format(value!)}
            </text>
          </g>
        ))}
        {rows.map((row, index) => {
          const x = size.left + index * pitch;
          const [high, low] = [(up.value(row) / scales[0]!) * reach, (down.value(row) / scales[1]!) * reach];
          const mark = index === at || undefined;
          return (
            <g key={row.t}>
              <rect
                className="bar-up"
                data-at={mark}
                x={x}
                y={middle - high}
                width={bar}
                height={high}
                rx={2}
              />
              <rect className="bar-down" data-at={mark} x={x} y={middle} width={bar} height={low} rx={2} />
            </g>
          );
        })}
        <line className="axis" x1={size.left} x2={width - size.right} y1={middle} y2={middle} />
        {rows.length > 1 ? (
          <>
            <text className="tick" x={size.left} y={size.height - 4}>
              {step(rows[0]!.t)}
            </text>
            <text className="tick" x={width - size.right} y={size.height - 4} textAnchor="end">
              {step(rows.at(-1)!.t)}
            </text>
          </>
        ) : null}
      </svg>
      <Values title={props.title} rows={rows} series={[up, down]} step={step} />
    </figure>
  );
}
