import { Alert, Anchor, Button, Stack, Text } from '@mantine/core';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { ReactNode } from 'react';
import { Link, useLocation } from 'wouter';
import type { Output } from '@parley/protocol';
import { call } from '../api/call.ts';
import type { ApiFailure } from '../api/call.ts';
import { sessionKey, useSession } from '../api/session.ts';
import { Card } from '../ui/card.tsx';
import { Field, PasswordField } from '../ui/field.tsx';
import { Failed, Loading } from '../ui/states.tsx';
import { SignInForm } from './sign-in.tsx';

/**
 * Screens for people who are not signed in: a forgotten password, and the links that mails carry. Their token is the fragment
 * of the address, which browsers send to nobody.
 */

const tokenOfLink = (): string => location.hash.slice(1);

const ToSignIn = (): ReactNode => (
  <Anchor component={Link} href="/" size="sm">
    To the sign-in
  </Anchor>
);

/** A form that is sent once; the result then replaces it. */
function OnceForm<T>(props: {
  label: string;
  send: () => Promise<T>;
  sent: (answer: T) => ReactNode;
  children: ReactNode;
}): ReactNode {
  const send = useMutation<T, ApiFailure>({ mutationFn: props.send });
  if (send.isSuccess) return props.sent(send.data);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        send.mutate();
      }}
    >
      <Stack>
        {props.children}
        {send.error ? <Failed error={send.error} /> : null}
        <Button type="submit" loading={send.isPending}>
          {props.label}
        </Button>
      </Stack>
    </form>
  );
}

const Done = ({ children }: { children: ReactNode }): ReactNode => (
  <Alert color="teal" variant="light" role="status">
    {children}
  </Alert>
);

/** Asks for an address, to which a link is sent. */
function LinkByMail<T>(props: {
  title: string;
  send: (email: string) => Promise<T>;
  sent: (answer: T, email: string) => string;
}): ReactNode {
  const [email, setEmail] = useState('');
  return (
    <Card title={props.title}>
      <OnceForm
        label="Send a link"
        send={() => props.send(email)}
        sent={(answer) => <Done>{props.sent(answer, email)}</Done>}
      >
        <Field
          label="E-mail"
          type="email"
          autoComplete="username"
          required
          autoFocus
          value={email}
          set={setEmail}
        />
      </OnceForm>
      <ToSignIn />
    </Card>
  );
}

const Forgot = (): ReactNode => (
  <LinkByMail
    title="A new password"
    send={(email) => call('password.forgot', { email }, null)}
    sent={({ mail }) =>
      mail
        ? 'If this address has an account, a link is on its way. It works for an hour.'
        : 'This service sends no e-mail. Its operator can create a link with: npm run parley -- account reset <e-mail>'
    }
  />
);

/** Where CHAT_SIGN_UP is open; elsewhere the service says that it is not. */
const SignUp = (): ReactNode => (
  <LinkByMail
    title="A new account"
    send={(email) => call('accounts.signUp', { email }, null)}
    sent={(_, email) => `A link is on its way to ${email}. It makes your account and your organization.`}
  />
);

const NewPassword = (props: {
  label: string;
  value: string;
  set: (value: string) => void;
  autoFocus?: boolean;
}): ReactNode => (
  <PasswordField
    {...props}
    description="10 characters or more; a few words do well."
    autoComplete="new-password"
    required
  />
);

function Reset(): ReactNode {
  const [password, setPassword] = useState('');
  return (
    <Card title="Choose a new password">
      <OnceForm
        label="Set the password"
        send={() => call('password.reset', { token: tokenOfLink(), password }, null)}
        sent={() => (
          <Done>The password is changed, and all sessions are ended. Sign in with the new one.</Done>
        )}
      >
        <NewPassword label="New password" value={password} set={setPassword} autoFocus />
      </OnceForm>
      <ToSignIn />
    </Card>
  );
}

function Invited(): ReactNode {
  const token = tokenOfLink();
  const session = useSession();
  const preview = useQuery<Output<'invitations.preview'>, ApiFailure>({
    queryKey: ['invitation', token],
    queryFn: () => call('invitations.preview', { token }, null),
  });
  if (preview.isPending || session.isPending) return <Loading what="the invitation" />;
  return (
    <Card title="You are invited">
      {preview.error ? (
        <>
          <Failed error={preview.error} />
          <ToSignIn />
        </>
      ) : preview.data.hasAccount && !session.data ? (
        <>
          <Text>{preview.data.email} has an account: sign in to accept.</Text>
          <SignInForm />
        </>
      ) : (
        <Accept token={token} invitation={preview.data} signedIn={Boolean(session.data)} />
      )}
    </Card>
  );
}

function Accept(props: {
  token: string;
  invitation: Output<'invitations.preview'>;
  signedIn: boolean;
}): ReactNode {
  const { token, invitation, signedIn } = props;
  const client = useQueryClient();
  const [, navigate] = useLocation();
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [organizationName, setOrganizationName] = useState('');
  const makesAccount = !signedIn && !invitation.hasAccount;
  const makesOrganization = invitation.organization === null;
  const accept = async (): Promise<void> => {
    const given = {
      ...(makesAccount ? { name, password } : {}),
      ...(makesOrganization ? { organizationName } : {}),
    };
    client.setQueryData(sessionKey, await call('invitations.accept', { token, ...given }, null));
    navigate('/');
  };
  return (
    <OnceForm label="Accept" send={accept} sent={() => null}>
      <Text>
        {invitation.email} joins {invitation.organization ?? 'a new organization'} as {invitation.role}.
      </Text>
      {makesOrganization ? (
        <Field
          label="Name of your organization"
          autoComplete="organization"
          required
          value={organizationName}
          set={setOrganizationName}
        />
      ) : null}
      {makesAccount ? (
        <>
          <Field label="Your name" autoComplete="name" value={name} set={setName} />
          <NewPassword label="Choose a password" value={password} set={setPassword} />
        </>
      ) : null}
    </OnceForm>
  );
}

const screens = { forgot: Forgot, 'sign-up': SignUp, reset: Reset, invitation: Invited };

export default function Linked({ screen }: { screen: keyof typeof screens }): ReactNode {
  const Shown = screens[screen];
  return <Shown />;
}
