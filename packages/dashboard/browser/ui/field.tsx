import { PasswordInput, TextInput } from '@mantine/core';
import type { PasswordInputProps, TextInputProps } from '@mantine/core';
import type { ReactNode } from 'react';

type Bound<P> = Omit<P, 'value' | 'onChange'> & { value: string; set: (value: string) => void };

/** Inputs that hand over their text. Pasting and password managers work in all of them. */
export const Field = ({ set, ...props }: Bound<TextInputProps>): ReactNode => (
  <TextInput {...props} onChange={(event) => set(event.currentTarget.value)} />
);

export const PasswordField = ({ set, ...props }: Bound<PasswordInputProps>): ReactNode => (
  <PasswordInput
    {...props}
    onChange={(event) => set(event.currentTarget.value)}
    visibilityToggleButtonProps={{ 'aria-label': 'Show or hide the password', tabIndex: 0 }}
  />
);

export const CodeField = (props: Omit<Bound<TextInputProps>, 'label'>): ReactNode => (
  <Field
    label="Code of your authenticator app, or a recovery code"
    autoComplete="one-time-code"
    required
    {...props}
  />
);
