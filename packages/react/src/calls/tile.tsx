import { forwardRef, useEffect, useRef } from 'react';
import type { ComponentPropsWithoutRef } from 'react';
import type { CallHandle, CallParticipantView } from '@parley/client/calls';
import { useName } from '../hooks/people.ts';
import { UserAvatar } from '../parts/avatar.tsx';
import { cx } from '../parts/tools.ts';
import { useCallStrings } from './hooks.ts';
import { CallIcon } from './icons.tsx';

/** `children` are buttons in the upper corner. */
export interface CallTileProps extends ComponentPropsWithoutRef<'li'> {
  call: CallHandle;
  participant: CallParticipantView;
  what?: 'video' | 'screen';
  /** `contain` shows the whole picture, `cover` fills the tile. */
  fit?: 'cover' | 'contain';
  /** Stands large because the user wants so. */
  pinned?: boolean;
  /** How good the network is, 1 to 5: known of this device alone. */
  network?: number | undefined;
  /** The own picture is shown as in a mirror. */
  mirrorSelf?: boolean;
}

/** One person, or one screen. */
export const CallTile = forwardRef<HTMLLIElement, CallTileProps>(function CallTile(props, ref) {
  const { call, participant, what = 'video', mirrorSelf = true, className, children, ...others } = props;
  const { fit = what === 'screen' ? 'contain' : 'cover', pinned = false, network, ...rest } = others;
  const { userId, isLocal, audioMuted, videoMuted, speaking, videoTrack, screenTrack } = participant;
  const strings = useCallStrings();
  const name = useName(userId);
  const shownName = isLocal ? strings.you : name;
  const isScreen = what === 'screen';
  const unsupported = isScreen ? participant.screenUnsupported : participant.videoUnsupported;
  const shows = isScreen ? screenTrack !== null : videoTrack !== null && !videoMuted;
  const title = isScreen ? strings.screenOf(shownName) : shownName;
  const weak = network === undefined || network >= 4 ? false : network >= 2 ? strings.weak : strings.lost;
  const state = [
    title,
    !isScreen && speaking && strings.speaking,
    !isScreen && audioMuted && strings.muted,
    !isScreen && !shows && strings.cameraOff,
    weak,
    pinned && strings.pinned,
  ];
  return (
    <li
      ref={ref}
      className={cx('parley-tile', className)}
      data-speaking={(!isScreen && speaking) || undefined}
      data-kind={what}
      data-pinned={pinned || undefined}
      data-network={weak ? (network! >= 2 ? 'weak' : 'lost') : undefined}
      data-self={isLocal || undefined}
      aria-label={state.filter(Boolean).join(', ')}
      {...rest}
    >
      {shows && !unsupported ? (
        <Picture
          call={call}
          userId={userId}
          what={what}
          fit={fit}
          mirror={isLocal && mirrorSelf && !isScreen}
        />
      ) : (
        <UserAvatar userId={userId} size={112} />
      )}
      <span className="parley-tile-name" aria-hidden="true">
        {isScreen ? null : audioMuted ? (
          <span className="parley-tile-muted">
            <CallIcon name="micOff" size={14} />
          </span>
        ) : speaking ? (
          <span className="parley-tile-bars">
            <i />
            <i />
            <i />
            <i />
          </span>
        ) : null}
        <bdi>{title}</bdi>
        {unsupported ? (
          <em>{strings.cannotShow}</em>
        ) : !isScreen && !shows ? (
          <em>{strings.cameraOff}</em>
        ) : null}
        {weak ? <em>{weak}</em> : null}
      </span>
      {children}
    </li>
  );
});

interface PictureProps {
  call: CallHandle;
  userId: string;
  what: 'video' | 'screen';
  fit: 'cover' | 'contain';
  mirror: boolean;
}
function Picture({ call, userId, what, fit, mirror }: PictureProps) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(
    () => (video.current ? call.attach(video.current, userId, what) : undefined),
    [call, userId, what],
  );
  return <video ref={video} data-fit={fit} data-mirror={mirror || undefined} muted playsInline />;
}
