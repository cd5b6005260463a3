import { createTheme } from '@mantine/core';
import type { CSSVariablesResolver, MantineColorsTuple } from '@mantine/core';

/** Shades chosen so that white text on them keeps 4.5:1 (7 in light, 6 in dark), and they as links: 7 in light, 4 in dark. */
const brand: MantineColorsTuple = [
  '#eef3ff',
  '#dbe4fb',
  '#b5c7f5',
  '#8ca8f0',
  '#7c9af0',
  '#4f74dd',
  '#3d62cf',
  '#2f50b4',
  '#27439a',
  '#1c3379',
];

export const theme = createTheme({
  primaryColor: 'brand',
  primaryShade: { light: 7, dark: 6 },
  colors: { brand },
  autoContrast: true,
  respectReducedMotion: true,
  defaultRadius: 'sm',
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, monospace',
  headings: { fontWeight: '600' },
  components: {
    Alert: { styles: { title: { color: 'inherit' }, label: { color: 'var(--mantine-color-text)' } } },
    Modal: { defaultProps: { closeButtonProps: { 'aria-label': 'Close' } } },
    Anchor: { defaultProps: { underline: 'hover' } },
  },
});

/** The kit's own are below 4.5:1 on its grey backgrounds. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: { '--mantine-color-dimmed': '#5b6472' },
  dark: { '--mantine-color-dimmed': '#a6adb8', '--mantine-color-anchor': brand[3] },
});
