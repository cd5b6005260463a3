import { createTheme } from '@mantine/core';
import type { CSSVariablesResolver, MantineColorsTuple } from '@mantine/core';

/** The kit takes its values from the tokens of `@parley/react`; only its scale must be literal, because it reckons with it. */

const spruce: MantineColorsTuple = [
  '#EDF7F3',
  '#DFF1E9',
  '#C0E3D4',
  '#A6D5C2',
  '#57D0A3',
  '#2C9F77',
  '#17805E',
  '#0F6B4F',
  '#0A5540',
  '#063B2C',
];

const token = (name: string): string => `var(--parley-${name})`;

type Tone = 'danger' | 'warn' | 'ok' | 'neutral';

/** What a colour of the kit means here. */
function toneOf(color: unknown): Tone {
  const name = typeof color === 'string' ? color.split('.')[0] : undefined;
  if (name === 'red') return 'danger';
  if (name === 'yellow') return 'warn';
  return name === 'gray' || name === 'blue' ? 'neutral' : 'ok';
}

const soft: Record<Tone, [background: string, text: string]> = {
  danger: [token('danger-soft'), token('danger')],
  warn: [token('warn-soft'), token('warn')],
  ok: [token('ok-soft'), token('ok')],
  neutral: [token('sunken'), token('text-2')],
};

export const theme = createTheme({
  primaryColor: 'spruce',
  primaryShade: { light: 7, dark: 4 },
  colors: { spruce },
  autoContrast: true,
  respectReducedMotion: true,
  focusRing: 'auto',
  defaultRadius: 'sm',
  radius: { xs: '4px', sm: '8px', md: '12px', lg: '16px' },
  fontSizes: { xs: '0.75rem', sm: '0.84375rem', md: '0.84375rem', lg: '1rem', xl: '1.5rem' },
  lineHeights: { xs: '1.35', sm: '1.48', md: '1.48', lg: '1.4', xl: '1.2' },
  fontFamily: token('font'),
  fontFamilyMonospace: token('font-mono'),
  shadows: { xs: token('shadow-1'), sm: token('shadow-2'), md: token('shadow-2'), xl: token('shadow-3') },
  headings: {
    fontWeight: '650',
    sizes: {
      h1: { fontSize: '1.5rem', lineHeight: '1.2' },
      h2: { fontSize: '1.5rem', lineHeight: '1.2' },
      h3: { fontSize: '1.125rem', lineHeight: '1.3' },
      h4: { fontSize: '0.9375rem', lineHeight: '1.4' },
    },
  },
  components: {
    Alert: {
      vars: (_: unknown, { color }: { color?: unknown }) => {
        const [background, text] = soft[toneOf(color)];
        return { root: { '--alert-bg': background, '--alert-color': text } };
      },
    },
    Button: {
      vars: (_: unknown, { color, variant }: { color?: unknown; variant?: string }) => {
        if (color === undefined && (variant === undefined || variant === 'filled'))
          return { root: { '--button-bg': token('action'), '--button-color': token('on-action') } };
        if (color === undefined || toneOf(color) !== 'danger') return { root: {} };
        const quiet = variant === 'light';
        return {
          root: {
            '--button-bg': quiet ? token('danger-soft') : token('danger-fill'),
            '--button-hover': quiet ? token('danger-soft') : token('danger-fill'),
            '--button-color': quiet ? token('danger') : '#fff',
          },
        };
      },
    },
    Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' }, radius: 'md', shadow: 'xl' } },
    Menu: { defaultProps: { shadow: 'sm', radius: 'md' } },
    Anchor: { defaultProps: { underline: 'hover' } },
  },
});

const shared: Record<string, string> = {
  '--mantine-color-body': token('surface'),
  '--mantine-color-text': token('text'),
  '--mantine-color-bright': token('text'),
  '--mantine-color-dimmed': token('text-3'),
  '--mantine-color-placeholder': token('text-3'),
  '--mantine-color-anchor': token('say'),
  '--mantine-color-error': token('danger'),
  '--mantine-color-default': token('surface'),
  '--mantine-color-default-hover': token('sunken'),
  '--mantine-color-default-color': token('text'),
  '--mantine-color-default-border': token('line-strong'),
  '--mantine-color-disabled': token('sunken'),
  '--mantine-color-disabled-color': token('text-3'),
  '--mantine-color-disabled-border': token('line'),
  '--mantine-primary-color-filled': token('action'),
  '--mantine-primary-color-filled-hover': token('say-strong'),
  '--mantine-primary-color-contrast': token('on-action'),
  '--mantine-primary-color-light': token('say-soft'),
  '--mantine-primary-color-light-hover': token('say-soft'),
  '--mantine-primary-color-light-color': token('say'),
  '--mantine-color-spruce-filled': token('action'),
  '--mantine-color-spruce-filled-hover': token('say-strong'),
  '--mantine-color-spruce-light': token('say-soft'),
  '--mantine-color-spruce-light-hover': token('sunken'),
  '--mantine-color-spruce-light-color': token('say'),
  '--mantine-color-spruce-outline': token('say'),
  '--mantine-color-spruce-text': token('say'),
};

export const variables: CSSVariablesResolver = () => ({ variables: {}, light: shared, dark: shared });
