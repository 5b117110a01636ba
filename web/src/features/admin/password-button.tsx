import type { User } from '@/api/types'
import { useAction } from '@/api/use-action'
import { changeUser, USERS_KEY } from '@/api/users'
import { LEAST_PASSWORD } from '@/lib/passwords'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

/** Sets a user's password. */
export function PasswordButton({ user }: { user: User }) {
  const change = useAction((form: FormData) => changeUser(user, { password: passwordOf(form) }), {
    changes: USERS_KEY,
  })
  return (
    <ActionDialog
      label="Password"
      confirm="Set"
      title={`New password for “${user.name}”`}
      dismiss="Close"
      pending={change.pending}
      problem={change.problem}
      onSubmit={change.run}
    >
      <p>The user is signed out everywhere. The user's tokens stay valid.</p>
      <Field label="Password" hint={`At least ${LEAST_PASSWORD} characters. You pass the password on yourself.`}>
        <input
          name="password"
          type="password"
          autoComplete="new-password"
          minLength={LEAST_PASSWORD}
          maxLength={200}
          required
        />
      </Field>
    </ActionDialog>
  )
}

function passwordOf(form: FormData): string {
  const password = form.get('password')
  return typeof password === 'string' ? password : ''
}
