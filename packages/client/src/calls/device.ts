import type { types } from 'mediasoup-client';
import { ParleyError } from '../errors.ts';

/**
 * Loads the package that speaks WebRTC when the first call begins. Pages that only chat do not need it, so it is not
 * installed with this one.
 */
export const loadMediasoup = (): Promise<typeof import('mediasoup-client')> =>
  import('mediasoup-client').catch((error: unknown) => {
    throw new ParleyError(
      'calls_not_installed',
      `Calls need one more package: npm install mediasoup-client (${(error as Error).message})`,
    );
  });

export const createDevice = async (): Promise<types.Device> => (await loadMediasoup()).Device.factory();
