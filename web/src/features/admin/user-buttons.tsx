import { LEAST_PASSWORD, MAY, roleOf, ROLES } from '@/api/account'
import { changeUser, createUser, USERS_KEY } from '@/api/admin'
import type { Member, User } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

/** The user of the admin token, who is always an enabled administrator. */
const INSTALLATION = 'admin'

/** True for the accounts that `me` may change: all but this user's own and the installation's. */
export function isManaged({ id }: Member, me: string | undefined): boolean {
  return id !== INSTALLATION && id !== me
}

export function CreateUserButton() {
  const create = useAction((form: FormData) => createUser(wanted(form)), { changes: USERS_KEY })
  return (
    <ActionDialog
      label="New user"
      confirm="Create"
      title="Create an account"
      dismiss="Close"
      primary
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <Field label="Name" hint="Letters, digits and . _ @ + -">
        <input name="name" maxLength={100} autoCapitalize="none" autoComplete="off" required />
      </Field>
      <Field label="Role">
        <select name="role" defaultValue="viewer">
          {ROLES.map((role) => (
            <option key={role} value={role}>
              {role}: {MAY[role]}
            </option>
          ))}
        </select>
      </Field>
      <Field
        label="Password"
        hint={`At least ${LEAST_PASSWORD} characters. Leave it empty for a user with tokens only. You pass the password on yourself.`}
      >
        <input name="password" type="password" autoComplete="new-password" minLength={LEAST_PASSWORD} maxLength={200} />
      </Field>
    </ActionDialog>
  )
}

function wanted(form: FormData) {
  const [name, password] = [form.get('name'), form.get('password')]
  return {
    name: typeof name === 'string' ? name.trim() : '',
    role: roleOf(form.get('role')),
    password: typeof password === 'string' && password !== '' ? password : null,
  }
}

/** Changes a user's role. */
export function RoleButton({ user }: { user: Member }) {
  const change = useAction((form: FormData) => changeUser(user, { role: roleOf(form.get('role')) }), {
    changes: USERS_KEY,
  })
  return (
    <ActionDialog
      label="Role"
      confirm="Change"
      title={`Role of “${user.name}”`}
      dismiss="Close"
      pending={change.pending}
      problem={change.problem}
      onSubmit={change.run}
    >
      <Field label="Role" hint="The role applies to every project from the next request on.">
        <select name="role" defaultValue={user.role} key={user.role}>
          {ROLES.map((role) => (
            <option key={role} value={role}>
              {role}: {MAY[role]}
            </option>
          ))}
        </select>
      </Field>
    </ActionDialog>
  )
}

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
