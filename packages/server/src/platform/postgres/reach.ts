import { setTimeout as delay } from 'node:timers/promises';
import { ApiError } from '@parley/protocol';
import type { Logger } from '../logging.ts';
import { isUnavailable } from './errors.ts';

const retryMs = 500;

/** Tries the work again for as long as the store cannot be reached. Any other error is thrown. */
export async function whenReached<T>(logger: Logger, work: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      const waitable =
        isUnavailable(error) || (error instanceof ApiError && error.code === 'service_unavailable');
      if (!waitable) throw error;
      if (attempt % 10 === 0) logger.warn('the store cannot be reached yet; trying again');
      await delay(retryMs);
    }
  }
}
