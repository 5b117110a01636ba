import { invitationsKey, invite } from '@/api/invitations'
import type { Enrolment } from '@/api/types'
import { useAction } from '@/api/use-action'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Command } from '@/lib/ui/copy-button'
import { Field } from '@/lib/ui/field'
import { Notice } from '@/lib/ui/notice'

/** A code that is shown once, with the command that uses it. */
export function NewCode({ code: { code, command } }: { code: Enrolment }) {
  return (
    <Notice title="Copy the code now: it is not shown again" testId="new-invitation">
      <Command text={code} label="code" />
      <p>The participant runs this command and then enters the code:</p>
      <Command text={command} label="command" />
    </Notice>
  )
}

const DAY_SECONDS = 24 * 3600

/** Creates a code with which one participant joins. */
export function InviteButton({ id, onMade }: { id: string; onMade: (code: Enrolment) => void }) {
  const create = useAction(
    async (form: FormData) => {
      onMade(await invite(id, wanted(form)))
    },
    { changes: invitationsKey(id) },
  )
  return (
    <ActionDialog
      label="Invite"
      confirm="Create a code"
      title="Invite a participant"
      dismiss="Close"
      pending={create.pending}
      problem={create.problem}
      onSubmit={create.run}
    >
      <p>One participant can join with the code, once. Send it over a channel that nobody else can read.</p>
      <Field label="Days until it expires">
        <input name="days" type="number" min={1} max={30} step={1} defaultValue={1} required />
      </Field>
      <Field label="Group" hint="Optional: a name for codes that belong together.">
        <input name="group" maxLength={100} />
      </Field>
      <label className="field-check">
        <input name="approval" type="checkbox" /> The participant must be approved here
      </label>
    </ActionDialog>
  )
}

function wanted(form: FormData) {
  const group = form.get('group')
  return {
    expires_seconds: Number(form.get('days')) * DAY_SECONDS,
    group: typeof group === 'string' && group.trim() !== '' ? group.trim() : null,
    approval: form.get('approval') === 'on',
  }
}
