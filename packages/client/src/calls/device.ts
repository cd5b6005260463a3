import type { types } from 'mediasoup-client';
import { ParleyError } from '../errors.ts';

type Mediasoup = typeof import('mediasoup-client');

/**
 * Loads the package that speaks WebRTC when the first call begins. Pages that only chat do not need it, so it is not
 * installed with this one.
 */
export const loadMediasoup = (): Promise<Mediasoup> =>
  import('mediasoup-client').then(
    // It is a CommonJS package: some bundlers that load it later leave its exports in `default`.
    (found: Mediasoup & { default?: Mediasoup }) => (found.Device ? found : found.default!),
    (error: unknown) => {
      throw new ParleyError(
        'calls_not_installed',
        `Calls need one more package: npm install mediasoup-client (${(error as Error).message})`,
      );
    },
  );

export const createDevice = async (): Promise<types.Device> => (await loadMediasoup()).Device.factory();
