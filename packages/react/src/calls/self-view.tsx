import { useState } from 'react';
import type { ComponentType, KeyboardEvent, PointerEvent } from 'react';
import type { CallHandle, CallParticipantView } from '@parley/client/calls';
import { useCallStrings } from './hooks.ts';
import { CallIcon } from './icons.tsx';
import { CallTile } from './tile.tsx';
import type { CallTileProps } from './tile.tsx';

export interface SelfViewProps {
  call: CallHandle;
  participant: CallParticipantView;
  Tile?: ComponentType<CallTileProps>;
  /** How good this device's network is, 1 to 5. */
  network?: number;
  /** Where it is at first. */
  corner?: { block?: 'start' | 'end'; inline?: 'start' | 'end' };
  /** Its width in pixels; a third of the stage, up to 256, unless given. */
  size?: number;
}

/** The own picture in a corner: the arrows and the pointer move it, a button hides it. */
export function SelfView({ call, participant, Tile = CallTile, network, corner, size }: SelfViewProps) {
  const strings = useCallStrings();
  const [{ block, inline }, setCorner] = useState({ block: 'end', inline: 'end', ...corner });
  const [hidden, setHidden] = useState(false);
  const isRtl = (element: Element): boolean => getComputedStyle(element).direction === 'rtl';
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    if (event.target !== event.currentTarget) return;
    const ahead = isRtl(event.currentTarget) ? 'ArrowLeft' : 'ArrowRight';
    if (event.key === 'ArrowUp') setCorner({ inline, block: 'start' });
    else if (event.key === 'ArrowDown') setCorner({ inline, block: 'end' });
    else if (event.key === 'ArrowLeft' || event.key === 'ArrowRight')
      setCorner({ block, inline: event.key === ahead ? 'end' : 'start' });
    else return;
    event.preventDefault();
  };
  /** Where the pointer lets go, the nearest corner. */
  const onPointerUp = (event: PointerEvent<HTMLElement>): void => {
    const box = event.currentTarget.parentElement?.getBoundingClientRect();
    if (!box || (event.target as Element).closest('button')) return;
    const right = event.clientX > box.left + box.width / 2;
    setCorner({
      block: event.clientY > box.top + box.height / 2 ? 'end' : 'start',
      inline: right !== isRtl(event.currentTarget) ? 'end' : 'start',
    });
  };
  const toggle = (
    <button
      type="button"
      className="parley-tile-action"
      aria-label={hidden ? strings.showSelf : strings.hideSelf}
      title={hidden ? strings.showSelf : strings.hideSelf}
      onClick={() => setHidden(!hidden)}
    >
      <CallIcon name={hidden ? 'show' : 'hide'} size={16} />
    </button>
  );
  if (hidden)
    return (
      <li className="parley-self-hidden" data-block={block} data-inline={inline}>
        {toggle}
      </li>
    );
  return (
    <Tile
      call={call}
      participant={participant}
      network={network}
      data-corner=""
      data-block={block}
      data-inline={inline}
      {...(size === undefined ? {} : { style: { width: size } })}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onPointerDown={(event) => {
        if (!(event.target as Element).closest('button'))
          event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerUp={onPointerUp}
    >
      {toggle}
    </Tile>
  );
}
