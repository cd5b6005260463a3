/** Lucide's icons (ISC) as paths, on 24 units. Those of parts that load later are there. */
const paths = {
  send: 'm5 12 7-7 7 7M12 19V5',
  down: 'M12 5v14m7-7-7 7-7-7',
  back: 'm15 18-6-6 6-6',
  close: 'M18 6 6 18M6 6l12 12',
  check: 'M20 6 9 17l-5-5',
  reply: 'M20 18v-2a4 4 0 0 0-4-4H4M9 17l-5-5 5-5',
  edit: 'M21.17 6.81a1 1 0 0 0-3.99-3.99L3.84 16.17a2 2 0 0 0-.5.83l-1.32 4.35a.5.5 0 0 0 .62.62l4.35-1.32a2 2 0 0 0 .83-.5zM15 5l4 4',
  attach:
    'm16 6-8.41 8.59a2 2 0 0 0 2.83 2.83l8.41-8.59a4 4 0 1 0-5.66-5.66l-8.38 8.55a6 6 0 1 0 8.48 8.48l8.38-8.55',
  poll: 'M3 3v16a2 2 0 0 0 2 2h16M7 16h8M7 11h12M7 6h3',
  emoji: 'M15 10V9M16.47 15a6 6 0 0 1-8.94 0M9 10V9M22 12a10 10 0 1 1-20 0 10 10 0 0 1 20 0',
  download: 'M12 15V3M21 15v4a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2v-4M7 10l5 5 5-5',
  search: 'm21 21-4.34-4.34M19 11a8 8 0 1 1-16 0 8 8 0 0 1 16 0',
  muted:
    'M10.27 21a2 2 0 0 0 3.46 0M17 17H4a1 1 0 0 1-.74-1.67C4.59 13.96 6 12.5 6 8a6 6 0 0 1 .26-1.74M2 2l20 20M8.67 3.01A6 6 0 0 1 18 8c0 2.69.77 4.65 1.71 6.05',
  pin: 'M12 17v5M9 10.76a2 2 0 0 1-1.11 1.79l-1.78.9A2 2 0 0 0 5 15.24V16a1 1 0 0 0 1 1h12a1 1 0 0 0 1-1v-.76a2 2 0 0 0-1.11-1.79l-1.78-.9A2 2 0 0 1 15 10.76V7a1 1 0 0 1 1-1 2 2 0 0 0 0-4H8a2 2 0 0 0 0 4 1 1 0 0 1 1 1z',
  offline:
    'M12 20h.01M8.5 16.43a5 5 0 0 1 7 0M5 12.86a10 10 0 0 1 5.17-2.69M19 12.86a10 10 0 0 0-2.01-1.52M2 8.82a15 15 0 0 1 4.18-2.64M22 8.82a15 15 0 0 0-11.29-3.76M2 2l20 20',
};

type IconName = keyof typeof paths;

/** Icons that show a direction turn with the reading direction. */
const turned = new Set<IconName>(['back', 'reply']);

export const Path = ({ d, size = 18, turn }: { d: string; size?: number | undefined; turn?: boolean }) => (
  <svg
    className="parley-icon"
    width={size}
    height={size}
    viewBox="0 0 24 24"
    aria-hidden="true"
    data-turn={turn || undefined}
  >
    <path d={d} />
  </svg>
);

export const Icon = ({ name, size }: { name: IconName; size?: number }) => (
  <Path d={paths[name]} size={size} turn={turned.has(name)} />
);
