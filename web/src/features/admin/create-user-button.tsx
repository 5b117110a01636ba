import { useAction } from '@/api/use-action'
import { createUser, USERS_KEY } from '@/api/users'
import { LEAST_PASSWORD } from '@/lib/passwords'
import { MAY, roleOf, ROLES } from '@/lib/roles'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

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
