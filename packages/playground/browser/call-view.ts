import type { CallHandle, Calls, CallSnapshot } from '@parley/client/calls';
import { button, byId, make, onFrame, setChildren } from './dom.ts';

/** The call that rings or runs: who is in it, and what one does with it. */

const words: Record<CallSnapshot['state'], string> = {
  incoming: 'calls you',
  connecting: 'calling…',
  connected: 'connected',
  reconnecting: 'reconnecting…',
  ended: 'ended',
};
const over: Record<string, string> = {
  missed: 'Nobody answered.',
  declined: 'Declined.',
  busy: 'Busy.',
  failed: 'The call failed.',
};

export interface CallView {
  start(conversationId: string, kind: 'audio' | 'video'): Promise<void>;
}

/** @param changed is told when a call began or ended. */
export function showCalls(calls: Calls, changed: () => void): CallView {
  const panel = byId('call');
  const tiles = new Map<string, Tile>();
  let call: CallHandle | null = null;
  let off: (() => void) | null = null;
  let speakerView = false;

  const say = (text: string): void => void (byId('call-problem').textContent = text);
  const attempt = (work: Promise<unknown>): void => void work.catch((e: Error) => say(e.message));

  const render = onFrame(() => {
    if (!call) return;
    const { state, participants, activeSpeaker, network, call: record } = call.get();
    if (state === 'ended') return close(over[record.endReason ?? ''] ?? '');
    panel.hidden = false;
    panel.dataset['state'] = state;
    byId('call-state').textContent =
      state === 'incoming' ? `${record.createdBy} ${words[state]}` : words[state];
    byId('call-ringing').hidden = state !== 'incoming';
    byId('call-controls').hidden = state === 'incoming';
    const bars = byId('call-network');
    bars.dataset['level'] = String(network.level);
    bars.textContent = '▁▃▅▆█'.slice(0, network.level);
    bars.title = network.reason ? `Network: ${network.reason}` : 'Network: good';
    const me = participants.find((p) => p.isLocal);
    byId('call-mute').textContent = me?.audioMuted ? 'Unmute' : 'Mute';
    byId('call-camera').textContent = me?.videoMuted ? 'Camera on' : 'Camera off';
    byId('call-screen').textContent = me?.screenTrack ? 'Stop sharing' : 'Share screen';
    byId('call-layout').textContent = speakerView ? 'Grid' : 'Speaker';
    const wanted = new Set<string>();
    const loudest = activeSpeaker ?? participants.find((p) => p.inCall && !p.isLocal)?.userId;
    for (const one of participants) {
      if (!one.inCall) continue;
      for (const what of ['video', ...(one.screenTrack || one.screenUnsupported ? ['screen'] : [])] as (
        'video' | 'screen'
      )[]) {
        const key = `${one.userId} ${what}`;
        wanted.add(key);
        let tile = tiles.get(key);
        if (!tile) tiles.set(key, (tile = createTile(call, one.userId, what)));
        const large = speakerView && (what === 'screen' || one.userId === loudest);
        const muted = one.audioMuted ? ' 🔇' : '';
        tile.show(`${one.userId}${what === 'screen' ? ' (screen)' : muted}`, {
          speaking: one.speaking,
          dark: what === 'video' && (one.videoMuted || !one.videoTrack),
          unsupported: what === 'video' ? one.videoUnsupported : one.screenUnsupported,
          large,
        });
      }
    }
    for (const [key, tile] of tiles) if (!wanted.has(key)) drop(key, tile);
    setChildren(
      byId('call-tiles'),
      [...tiles.values()].map((t) => t.view),
    );
  });

  const drop = (key: string, tile: Tile): void => {
    tile.stop();
    tiles.delete(key);
  };

  function show(next: CallHandle): void {
    off?.();
    for (const [key, tile] of tiles) drop(key, tile);
    call = next;
    off = next.subscribe(render);
    say('');
    changed();
    render();
    void listDevices();
  }

  function close(text: string): void {
    off?.();
    off = null;
    call = null;
    for (const [key, tile] of tiles) drop(key, tile);
    panel.hidden = true;
    say(text);
    changed();
  }

  async function listDevices(): Promise<void> {
    const menu = byId<HTMLSelectElement>('call-devices');
    const devices = await calls.devices.list().catch(() => []);
    menu.replaceChildren(
      make('option', { value: '' }, 'Devices…'),
      ...devices
        .filter((d) => d.label !== '')
        .map((d) => make('option', { value: `${d.kind} ${d.id}` }, `${d.kind}: ${d.label}`)),
    );
  }
  byId<HTMLSelectElement>('call-devices').onchange = (event) => {
    const menu = event.target as HTMLSelectElement;
    const [kind, id] = [menu.value.split(' ')[0], menu.value.slice(menu.value.indexOf(' ') + 1)];
    menu.value = '';
    if (!call || !id) return;
    if (kind === 'mic') attempt(call.setMicrophone(id));
    else if (kind === 'camera') attempt(call.setCamera(true, id));
    else attempt(call.setSpeaker(id));
  };

  const mine = () => call?.get().participants.find((p) => p.isLocal);
  byId('call-accept').onclick = () => call && attempt(call.accept().then(listDevices));
  byId('call-decline').onclick = () => call && attempt(call.decline());
  byId('call-leave').onclick = () => call && attempt(call.leave());
  byId('call-mute').onclick = () => call && attempt(mine()?.audioMuted ? call.unmute() : call.mute());
  byId('call-camera').onclick = () => call && attempt(call.setCamera(mine()?.videoMuted ?? true));
  byId('call-screen').onclick = () =>
    call && attempt(mine()?.screenTrack ? call.stopScreen() : call.shareScreen());
  byId('call-layout').onclick = () => {
    speakerView = !speakerView;
    panel.classList.toggle('speaker', speakerView);
    render();
  };

  calls.on('incoming', (next) => {
    if (!call) show(next);
  });
  calls.on('error', (error) => say(error.message));
  calls.devices.watch(() => void listDevices());
  // A page that was loaded anew is back in its call.
  calls.rejoin().then(
    (back) => back && show(back),
    (e: Error) => say(e.message),
  );

  return {
    start: async (conversationId, kind) => {
      say('');
      try {
        show(await calls.start(conversationId, { kind }));
      } catch (error) {
        say((error as Error).message);
      }
    },
  };
}

interface Tile {
  view: HTMLElement;
  show(name: string, how: { speaking: boolean; dark: boolean; unsupported: boolean; large: boolean }): void;
  stop(): void;
}

function createTile(call: CallHandle, userId: string, what: 'video' | 'screen'): Tile {
  const video = make('video', {});
  const name = make('span', { class: 'name' });
  const note = make('span', { class: 'note' }, 'This browser cannot show this video.');
  const view = make('div', { class: 'tile' }, video, note, name);
  const stop = call.attach(video, userId, what);
  return {
    view,
    show: (text, { speaking, dark, unsupported, large }) => {
      name.textContent = text;
      view.classList.toggle('speaking', speaking);
      view.classList.toggle('dark', dark);
      view.classList.toggle('large', large);
      note.hidden = !unsupported;
    },
    stop,
  };
}

/** The buttons of a conversation. */
export function callButtons(view: CallView, conversationId: () => string | null): void {
  const start = (kind: 'audio' | 'video') => () => {
    const id = conversationId();
    if (id !== null) void view.start(id, kind);
  };
  byId('start-call').replaceChildren(button('Call', start('audio')), button('Video', start('video')));
}
