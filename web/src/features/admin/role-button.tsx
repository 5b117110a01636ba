import type { Member } from '@/api/types'
import { useAction } from '@/api/use-action'
import { changeUser, USERS_KEY } from '@/api/users'
import { MAY, roleOf, ROLES } from '@/lib/roles'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

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
