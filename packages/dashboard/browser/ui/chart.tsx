import { Group, Text } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import type { ReactNode } from 'react';
import { compact, plain } from './figures.ts';
import { roundUp, useReading, Values } from './readings.tsx';
import type { Series } from './readings.tsx';

/** Charts over time, drawn as SVG: lines, and bars in two directions. */

export interface ChartLine<T> extends Series<T> {
  /** A class of parts.css: line-1 to line-3, key-1 to key-3. */
  tone: 1 | 2 | 3;
}

interface Common<T> {
  title: string;
  rows: readonly T[];
  /** How a step is called. */
  step: (t: string) => string;
}

interface Plot {
  /** Of the whole picture. */
  width: number;
  plotWidth: number;
  /** The step that is read. */
  at: number | null;
}

const left = 44;
const right = 6;
const top = 10;
const bottom = 22;

/** What all charts have: a title, a key with the values of the step that is read, the ends of the time, and a table. */
function Frame<T extends { t: string }>(
  props: Common<T> & {
    unit?: string;
    series: ChartLine<T>[];
    height: number;
    /** What a screen reader says of the picture. */
    saying: string;
    /** Which step lies that far into the plot, from 0 to 1. */
    stepAt: (share: number) => number;
    draw: (plot: Plot) => ReactNode;
  },
): ReactNode {
  const { rows, series, step, height, title } = props;
  const { ref, width } = useElementSize();
  const plotWidth = Math.max(0, width - left - right);
  const { at, read, press } = useReading(rows.length - 1);
  const chosen = at === null ? undefined : rows[at];
  return (
    <figure className="chart" ref={ref}>
      <Group justify="space-between" gap="xs" mb={6}>
        <Group gap="sm" component="figcaption">
          <Text fw={600}>{title}</Text>
          {props.unit === undefined ? null : (
            <Text size="sm" c="dimmed">
              {props.unit}
            </Text>
          )}
        </Group>
        <Group gap="md">
          {series.map((one) => (
            <Text key={one.label} size="sm" className={`key key-${one.tone}`}>
              {one.label}
              {chosen ? `: ${plain(one.value(chosen))}` : ''}
            </Text>
          ))}
          <Text size="sm" c="dimmed" aria-live="polite">
            {chosen ? step(chosen.t) : ''}
          </Text>
        </Group>
      </Group>
      <svg
        width={width}
        height={height}
        role="img"
        aria-label={`${title}${props.unit === undefined ? '' : `, ${props.unit}`}: ${props.saying}. Arrow keys read single values.`}
        tabIndex={0}
        onPointerMove={({ clientX, currentTarget }) =>
          read(
            props.stepAt(
              (clientX - currentTarget.getBoundingClientRect().left - left) / Math.max(1, plotWidth),
            ),
          )
        }
        onPointerLeave={() => read(null)}
        onKeyDown={press}
        onBlur={() => read(null)}
      >
        {props.draw({ width, plotWidth, at })}
        {rows.length > 1 ? (
          <>
            <text className="tick" x={left} y={height - 4}>
              {step(rows[0]!.t)}
            </text>
            <text className="tick" x={width - right} y={height - 4} textAnchor="end">
              {step(rows.at(-1)!.t)}
            </text>
          </>
        ) : null}
      </svg>
      <Values title={title} rows={rows} series={series} step={step} />
    </figure>
  );
}

/** A line across the plot with its value. */
const Level = (props: { y: number; value: number; width: number; axis?: boolean }): ReactNode => (
  <>
    <line
      className={props.axis ? 'axis' : 'grid'}
      x1={left}
      x2={props.width - right}
      y1={props.y}
      y2={props.y}
    />
    <text className="tick" x={left - 6} y={props.y + 4} textAnchor="end">
      {compact(props.value)}
    </text>
  </>
);

const highest = <T,>(rows: readonly T[], series: Series<T>[]): number =>
  roundUp(Math.max(0, ...rows.flatMap((row) => series.map((one) => one.value(row)))));

/** Rates and durations. */
export function Lines<T extends { t: string }>(props: Common<T> & { lines: ChartLine<T>[] }): ReactNode {
  const { rows, lines } = props;
  const height = 180;
  const last = rows.length - 1;
  const most = highest(rows, lines);
  const y = (value: number): number => top + (height - top - bottom) * (1 - value / most);
  return (
    <Frame
      {...props}
      series={lines}
      height={height}
      saying={lines.map((line) => line.label).join(', ')}
      stepAt={(share) => Math.round(share * last)}
      draw={({ width, plotWidth, at }) => {
        const x = (index: number): number => left + (last < 1 ? 0 : (index / last) * plotWidth);
        return (
          <>
            {[0, most / 2, most].map((value) => (
              <Level key={value} y={y(value)} value={value} width={width} axis={value === 0} />
            ))}
            {at === null ? null : <line className="grid" x1={x(at)} x2={x(at)} y1={top} y2={y(0)} />}
            {lines.map((line) => (
              <polyline
                key={line.label}
                className={`line line-${line.tone}`}
                points={rows.map((row, index) => `${x(index)},${y(line.value(row))}`).join(' ')}
              />
            ))}
          </>
        );
      }}
    />
  );
}

/** Two series: one above the line, one below it, each with its own scale. */
export function MirroredBars<T extends { t: string }>(
  props: Common<T> & { unit: string; up: Series<T>; down: Series<T> },
): ReactNode {
  const { rows, up, down } = props;
  const height = 230;
  const reach = (height - top - bottom) / 2;
  const middle = top + reach;
  const scales = [highest(rows, [up]), highest(rows, [down])] as const;
  return (
    <Frame
      {...props}
      series={[
        { ...up, tone: 1 },
        { ...down, tone: 2 },
      ]}
      height={height}
      saying={`${up.label} above, ${down.label} below`}
      stepAt={(share) => Math.floor(share * rows.length)}
      draw={({ width, plotWidth, at }) => {
        const pitch = plotWidth / Math.max(1, rows.length);
        const size = { width: Math.max(1, pitch - Math.min(3, pitch / 3)), rx: 2 };
        return (
          <>
            <Level y={top} value={scales[0]} width={width} />
            <Level y={middle + reach} value={scales[1]} width={width} />
            {rows.map((row, index) => {
              const high = (up.value(row) / scales[0]) * reach;
              const low = (down.value(row) / scales[1]) * reach;
              const mark = { 'data-at': index === at || undefined, x: left + index * pitch };
              return (
                <g key={row.t}>
                  <rect className="bar-up" {...mark} {...size} y={middle - high} height={high} />
                  <rect className="bar-down" {...mark} {...size} y={middle} height={low} />
                </g>
              );
            })}
            <line className="axis" x1={left} x2={width - right} y1={middle} y2={middle} />
          </>
        );
      }}
    />
  );
}
