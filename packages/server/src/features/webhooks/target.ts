import { invalid } from '../../platform/api-errors.ts';
import { OutboundRefused } from '../../platform/outbound/outbound.ts';
import type { Outbound } from '../../platform/outbound/outbound.ts';

/** The URL, if the guard lets something be sent there; what its name resolves to is checked when that happens. */
export function checkedUrl(outbound: Pick<Outbound, 'checkUrl'>, url: string): string {
  try {
    outbound.checkUrl(url);
  } catch (error) {
    if (error instanceof OutboundRefused) throw invalid('url', `${error.message}.`);
    throw error;
  }
  return url;
}
