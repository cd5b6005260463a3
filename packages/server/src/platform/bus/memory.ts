import type { Bus } from './port.ts';

/** The bus of a service with one process: there is no other node to tell, and none that tells. */
export const loneBus: Bus = {
  alone: true,
  publish: () => undefined,
  subscribe: () => Promise.resolve(),
  unsubscribe: () => undefined,
  listen: () => undefined,
  close: () => Promise.resolve(),
};
