import { ParleyError } from '../errors.ts';

/** Microphones, cameras and screens. Errors are those of the specification (calls#errors). */

export interface MediaDevice {
  id: string;
  kind: 'mic' | 'camera' | 'speaker';
  /** Empty until the user allowed the page to use a device of this kind. */
  label: string;
}

const own = (): MediaDevices | undefined => navigator.mediaDevices as MediaDevices | undefined;

const kinds = { audioinput: 'mic', videoinput: 'camera', audiooutput: 'speaker' } as const;

export async function listDevices(): Promise<MediaDevice[]> {
  // Pages without https have no devices.
  const found = (await own()?.enumerateDevices()) ?? [];
  return found.map(({ deviceId, kind, label }) => ({ id: deviceId, kind: kinds[kind], label }));
}

/** Calls `changed` when a device was added or removed. Returns the function that ends it. */
export function watchDevices(changed: () => void): () => void {
  own()?.addEventListener('devicechange', changed);
  return () => own()?.removeEventListener('devicechange', changed);
}

const exact = (deviceId: string | undefined) => (deviceId ? { deviceId: { exact: deviceId } } : {});

export const openMicrophone = (deviceId?: string): Promise<MediaStreamTrack> =>
  one('audio', { echoCancellation: true, noiseSuppression: true, autoGainControl: true, ...exact(deviceId) });

/** Opens the camera in a size that is large enough for three simulcast layers. */
export const openCamera = (deviceId?: string): Promise<MediaStreamTrack> =>
  one('video', {
    width: { ideal: 1280 },
    height: { ideal: 720 },
    frameRate: { max: 30 },
    ...exact(deviceId),
  });

async function one(kind: 'audio' | 'video', constraints: MediaTrackConstraints): Promise<MediaStreamTrack> {
  try {
    const stream = await navigator.mediaDevices.getUserMedia({ [kind]: constraints });
    return stream.getTracks()[0]!;
  } catch (e) {
    throw mediaError(e, kind === 'audio' ? 'microphone' : 'camera');
  }
}

/** The picture of the screen, and its sound if the browser offers it. */
export async function openScreen(): Promise<MediaStreamTrack[]> {
  try {
    const stream = await navigator.mediaDevices.getDisplayMedia({
      video: { frameRate: { max: 15 } },
      audio: true,
    });
    return stream.getTracks();
  } catch (e) {
    throw mediaError(e, 'screen');
  }
}

export function mediaError(e: unknown, what: string): ParleyError {
  const { name, message } = e as Error;
  if (name === 'NotAllowedError' || name === 'SecurityError')
    return new ParleyError('media_permission_denied', `The ${what} may not be used: ${message}`);
  if (name === 'NotFoundError' || name === 'OverconstrainedError')
    return new ParleyError('media_device_not_found', `There is no ${what}: ${message}`);
  if (name === 'NotReadableError' || name === 'AbortError')
    return new ParleyError('media_device_busy', `The ${what} is in use by another application: ${message}`);
  // In a page without https there are no devices at all.
  return new ParleyError('media_device_not_found', `The ${what} cannot be opened: ${message}`);
}
