import type { types } from 'mediasoup-client';
import type { Wire } from '../client-types.ts';
import type { CallMedia } from '../types.ts';
import { asError } from '../errors.ts';
import { createDevice } from './device.ts';

/**
 * Tests which routes lead to the media server. On each route a small picture that this page draws is sent there and
 * received back: no camera is opened, and nobody is called.
 */

export type Route = 'udp' | 'tcp' | 'turn';

export interface RouteResult {
  route: Route;
  works: boolean;
  /** Milliseconds until pictures came back; null if none did. */
  ms: number | null;
  /** Milliseconds of a round trip, once connected. */
  rttMs: number | null;
  /**
   * `not_configured`: the service names no TURN server. `no_connection`: no connection can be made. `no_media`: it
   * connects, but the picture does not come back. `unavailable`: the service has no media server at the moment, or
   * cannot be asked.
   */
  problem: 'not_configured' | 'no_connection' | 'no_media' | 'unavailable' | null;
  message: string | null;
}

export const routes: readonly Route[] = ['udp', 'tcp', 'turn'];

/** Milliseconds that a route gets: finding a relay over a bad network takes some seconds. */
const patienceMs = 12_000;
/** How many received pictures prove that a route works. */
const enough = 3;

interface Stat extends RTCStats {
  framesDecoded?: number;
  nominated?: boolean;
  currentRoundTripTime?: number;
}

/**
 * Tests one route after the other.
 * @param found called with each result as soon as it is known.
 */
export async function testRoutes(wire: Wire, found: (result: RouteResult) => void): Promise<RouteResult[]> {
  const results: RouteResult[] = [];
  for (const route of routes) {
    const result = await testRoute(wire, route);
    results.push(result);
    found(result);
  }
  return results;
}

async function testRoute(wire: Wire, route: Route): Promise<RouteResult> {
  const began = performance.now();
  const failed = (problem: RouteResult['problem'], message: string | null = null): RouteResult => ({
    route,
    works: false,
    ms: null,
    rttMs: null,
    problem,
    message,
  });
  const closing: (() => void)[] = [];
  let connected = false;
  try {
    const { callId, media } = await wire.request('call.test', {});
    const relays = media.iceServers.filter((server) => server.urls.some((url) => url.startsWith('turn')));
    if (route === 'turn' && relays.length === 0) return failed('not_configured');
    const device = await createDevice();
    await device.load({ routerRtpCapabilities: media.rtpCapabilities as types.RtpCapabilities });
    const opened = await wire.request('call.open', {
      callId,
      device: media.device,
      rtpCapabilities: device.recvRtpCapabilities as CallMedia['rtpCapabilities'],
      ...(route === 'tcp' ? { tcp: true } : {}),
    });
    const settings = (transport: unknown) => {
      const given = transport as types.TransportOptions;
      return {
        ...given,
        iceCandidates: given.iceCandidates.filter((c) => c.protocol === (route === 'tcp' ? 'tcp' : 'udp')),
        ...(route === 'turn' ? { iceServers: relays, iceTransportPolicy: 'relay' as const } : {}),
      };
    };
    const send = device.createSendTransport(settings(opened.send));
    const recv = device.createRecvTransport(settings(opened.recv));
    closing.push(
      () => send.close(),
      () => recv.close(),
    );
    for (const transport of [send, recv])
      transport.on('connect', ({ dtlsParameters }, done, refused) => {
        wire
          .request('call.connect', {
            callId,
            transportId: transport.id,
            dtlsParameters: { ...dtlsParameters },
          })
          .then(() => done(), refused);
      });
    send.on('connectionstatechange', (state) => (connected ||= state === 'connected'));
    send.on('produce', ({ kind, rtpParameters }, done, refused) => {
      wire
        .request('call.produce', { callId, source: 'camera', kind, rtpParameters: { ...rtpParameters } })
        .then(({ producerId }) => done({ id: producerId }), refused);
    });
    const picture = draw();
    closing.push(picture.stop);
    const producer = await send.produce({ track: picture.track });
    const { consumers } = await wire.request('call.consume', { callId, producerIds: [producer.id] });
    const { id, producerId, kind, rtpParameters } = consumers[0]!;
    await recv.consume({ id, producerId, kind, rtpParameters: rtpParameters as types.RtpParameters });
    await wire.request('call.layers', { callId, consumerId: id, paused: false });
    while (performance.now() - began < patienceMs) {
      const stats = [...(await recv.getStats()).values()] as Stat[];
      if (stats.some((s) => s.type === 'inbound-rtp' && (s.framesDecoded ?? 0) >= enough)) {
        const pair = stats.find((s) => s.type === 'candidate-pair' && s.nominated);
        const rtt = pair?.currentRoundTripTime;
        return {
          route,
          works: true,
          problem: null,
          message: null,
          ms: Math.round(performance.now() - began),
          rttMs: rtt === undefined ? null : Math.round(rtt * 1_000),
        };
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    return failed(connected ? 'no_media' : 'no_connection');
  } catch (e) {
    return failed('unavailable', asError(e).message);
  } finally {
    for (const close of closing) close();
  }
}

/** Draws a small moving picture. */
function draw(): { track: MediaStreamTrack; stop: () => void } {
  const canvas = document.createElement('canvas');
  canvas.width = 160;
  canvas.height = 120;
  const pen = canvas.getContext('2d')!;
  let step = 0;
  const paint = (): void => {
    pen.fillStyle = `hsl(${(step += 20) % 360} 80% 50%)`;
    pen.fillRect(0, 0, canvas.width, canvas.height);
  };
  paint();
  const timer = setInterval(paint, 50);
  const track = canvas.captureStream(20).getVideoTracks()[0]!;
  return {
    track,
    stop: () => {
      clearInterval(timer);
      track.stop();
    },
  };
}
