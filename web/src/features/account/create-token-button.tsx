import { createToken, tokensQuery } from '@/api/people'
import type { Scope } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'

const DAY_SECONDS = 24 * 3600

export type NewToken = Awaited<ReturnType<typeof createToken>>

export function CreateTokenButton({ onMade }: { onMade: (token: NewToken) => void }) {
  const create = useAction(
    async (form: FormData) => {
      onMade(await createToken(wanted(form)))
    },
    { changes: tokensQuery.queryKey },
  )
  return (
    <ActionDialog
      label="New token"
      confirm="Create"
      title="Create a token for a program"
      dismiss="Close"
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <Field label="Name" hint="For example the program that uses it.">
        <input name="name" type="text" maxLength={100} required />
      </Field>
      <Field label="Scope" hint="A token never allows more than your role.">
        <select name="scope">
          <option value="read">reading only</option>
          <option value="write">reading and changing</option>
        </select>
      </Field>
      <Field label="Days until it expires" hint="0 means never.">
        <input name="days" type="number" min={0} max={3660} step={1} defaultValue={90} required />
      </Field>
    </ActionDialog>
  )
}

function wanted(form: FormData) {
  const name = form.get('name')
  const scopes: Scope[] = form.get('scope') === 'write' ? ['read', 'write'] : ['read']
  const days = Number(form.get('days'))
  return {
    name: typeof name === 'string' ? name.trim() : '',
    scopes,
    expires_seconds: days === 0 ? null : days * DAY_SECONDS,
  }
}
