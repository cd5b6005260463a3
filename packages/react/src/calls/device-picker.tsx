import { forwardRef, useId, useState } from 'react';
import type { ComponentPropsWithoutRef } from 'react';
import type { MediaDevice } from '@parley/client/calls';
import { cx } from '../parts/tools.ts';
import { useCallStrings, useDevices } from './hooks.ts';

export type DeviceKind = MediaDevice['kind'];

export interface DevicePickerProps extends Omit<ComponentPropsWithoutRef<'div'>, 'children'> {
  kinds: readonly DeviceKind[];
  /** The devices in use; the first of a kind unless given. */
  chosen?: Partial<Record<DeviceKind, string | undefined>>;
  onChoose: (kind: DeviceKind, deviceId: string) => void;
}

const lists = { mic: 'mics', camera: 'cameras', speaker: 'speakers' } as const;
const labels = { mic: 'microphone', camera: 'camera', speaker: 'speaker' } as const;

/** One group of choices for each kind of device. */
export const DevicePicker = forwardRef<HTMLDivElement, DevicePickerProps>(function DevicePicker(props, ref) {
  const { kinds, chosen = {}, onChoose, className, ...rest } = props;
  const strings = useCallStrings();
  const devices = useDevices();
  const id = useId();
  const [picked, setPicked] = useState<Partial<Record<DeviceKind, string>>>({});
  const current = (kind: DeviceKind): string | undefined => {
    const all = devices[lists[kind]];
    const wanted = picked[kind] ?? chosen[kind];
    return (all.find((device) => device.id === wanted) ?? all[0])?.id;
  };
  return (
    <div ref={ref} className={cx('parley-device-list', className)} {...rest}>
      {kinds.map((kind) => (
        <fieldset key={kind} role="radiogroup" aria-label={strings[labels[kind]]}>
          <legend aria-hidden="true">{strings[labels[kind]]}</legend>
          {devices[lists[kind]].length === 0 ? <p>{strings.noDevice}</p> : null}
          {devices[lists[kind]].map((device, i) => (
            <label key={device.id}>
              <input
                type="radio"
                name={`${id} ${kind}`}
                checked={device.id === current(kind)}
                onChange={() => {
                  setPicked({ ...picked, [kind]: device.id });
                  onChoose(kind, device.id);
                }}
              />
              {device.label || strings.unnamedDevice(i + 1)}
            </label>
          ))}
        </fieldset>
      ))}
    </div>
  );
});
