/** Rates the network of a call by the browser's statistics of the last seconds. */

export interface NetworkQuality {
  /** 5 is perfect, 1 hardly works. */
  level: 1 | 2 | 3 | 4 | 5;
  /** What is worst; null at level 5. */
  reason: 'loss' | 'delay' | 'bandwidth' | 'disconnected' | null;
}

interface Totals {
  lost: number;
  received: number;
}

/** The stream with which the media server probes for bandwidth. It is no media: most of its numbers are never sent, and count as lost. */
export const probeSsrc = 1234;

interface Stat extends RTCStats {
  ssrc?: number;
  packetsLost?: number;
  packetsReceived?: number;
  fractionLost?: number;
  roundTripTime?: number;
  currentRoundTripTime?: number;
  nominated?: boolean;
  qualityLimitationReason?: string;
}

export class NetworkMeter {
  #before: Totals | null = null;

  /** @param stats the statistics of both transports. */
  measure(stats: readonly RTCStats[]): NetworkQuality {
    const now: Totals = { lost: 0, received: 0 };
    let sentLoss = 0;
    let rtt = 0;
    let limited = false;
    for (const stat of stats as readonly Stat[]) {
      if (stat.ssrc === probeSsrc) continue;
      if (stat.type === 'inbound-rtp') {
        now.lost += Math.max(0, stat.packetsLost ?? 0);
        now.received += stat.packetsReceived ?? 0;
      } else if (stat.type === 'remote-inbound-rtp') sentLoss = Math.max(sentLoss, stat.fractionLost ?? 0);
      else if (stat.type === 'candidate-pair' && stat.nominated)
        rtt = Math.max(rtt, stat.currentRoundTripTime ?? 0);
      else if (stat.type === 'outbound-rtp') limited ||= stat.qualityLimitationReason === 'bandwidth';
    }
    const before = this.#before ?? now;
    this.#before = now;
    const lost = Math.max(0, now.lost - before.lost);
    const all = lost + Math.max(0, now.received - before.received);
    const loss = Math.max(sentLoss, all > 20 ? lost / all : 0);
    const found = [
      { level: step(loss, [0.01, 0.03, 0.08, 0.2]), reason: 'loss' as const },
      { level: step(rtt, [0.15, 0.3, 0.6, 1.2]), reason: 'delay' as const },
      { level: limited ? (3 as const) : (5 as const), reason: 'bandwidth' as const },
    ].sort((a, b) => a.level - b.level)[0]!;
    return found.level === 5 ? { level: 5, reason: null } : found;
  }
}

/** Level 5 below the first bound, level 1 above the last. */
const step = (value: number, bounds: readonly number[]): NetworkQuality['level'] =>
  (5 - bounds.filter((bound) => value > bound).length) as NetworkQuality['level'];
