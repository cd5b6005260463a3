import { probeSsrc } from './network.ts';

/** Finds pictures that arrive and are never decoded, as when a browser offers a codec that it cannot decode. */

interface Inbound extends RTCStats {
  kind?: string;
  ssrc?: number;
  packetsReceived?: number;
  framesDecoded?: number;
}

/** Packets between two measurements that are more than a trickle. */
const fewPackets = 10;
/** How many measurements with packets and no picture make one that cannot be decoded. */
const patience = 3;

export class Decoding {
  #streams = new Map<number, { packets: number; dark: number }>();

  /**
   * @param stats the statistics of the transports, every two seconds.
   * @returns the streams that were never decoded, by ssrc.
   */
  measure(stats: readonly RTCStats[]): Set<number> {
    const streams = new Map<number, { packets: number; dark: number }>();
    for (const { type, kind, ssrc, packetsReceived = 0, framesDecoded = 0 } of stats as readonly Inbound[]) {
      if (type !== 'inbound-rtp' || kind !== 'video' || ssrc === undefined || ssrc === probeSsrc) continue;
      if (framesDecoded > 0) continue;
      const before = this.#streams.get(ssrc) ?? { packets: 0, dark: 0 };
      const dark = before.dark + (packetsReceived - before.packets > fewPackets ? 1 : 0);
      streams.set(ssrc, { packets: packetsReceived, dark });
    }
    this.#streams = streams;
    return new Set([...streams].filter(([, { dark }]) => dark >= patience).map(([ssrc]) => ssrc));
  }
}
