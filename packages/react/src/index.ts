export * from './hooks/index.ts';
export { english } from './strings.ts';
export type { Strings } from './strings.ts';
