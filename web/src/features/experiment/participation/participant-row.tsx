import { approveParticipant, refuseParticipant, revokeParticipant } from '@/api/actions'
import { experimentKey } from '@/api/queries'
import type { Participant } from '@/api/types'
import { useAction } from '@/api/use-action'
import { formatAgo, formatBytes, formatCount, formatLoss, formatSeconds, formatTime } from '@/lib/format'
import { ActionDialog } from '@/lib/ui/action-dialog'
import { Field } from '@/lib/ui/field'
import { SiteName } from '@/lib/ui/site-name'
import { StateChip } from '@/lib/ui/state-chip'
import type { RowPlace } from '@/lib/ui/virtual-table'

import type { ParticipantSummary } from './participant-summary'
import { STATE_LABELS } from './participation-matrix'

interface Props {
  id: string
  summary: ParticipantSummary
  place: RowPlace
  mayDecide: boolean
  now: number
  onOpen: (name: string) => void
  onDialog: DialogWatcher
}

/** Receives whether a dialog of the row is open. */
type DialogWatcher = (open: boolean) => void

export function ParticipantRow({ id, summary, place, mayDecide, now, onOpen, onDialog }: Props) {
  const { name, displayName, participant, asked, accepted, rejected, missed, bytes, seconds, loss } = summary
  return (
    <tr {...place}>
      <th scope="row">
        <button
          type="button"
          className="site-button"
          onClick={() => {
            onOpen(name)
          }}
        >
          <SiteName name={displayName} id={name} />
        </button>
        {participant?.group != null && (
          <bdi dir="auto" className="muted small site-id">
            {participant.group}
          </bdi>
        )}
      </th>
      <td>
        <StateAndProblems summary={summary} />
        {participant?.state === 'pending' && mayDecide && <ApprovalButtons {...{ id, participant, onDialog }} />}
        {participant?.state === 'active' && mayDecide && <RevokeButton {...{ id, participant, onDialog }} />}
      </td>
      <td className="number">{summary.lastRound ?? '–'}</td>
      <td className="number">
        {formatCount(accepted)}
        <span className="muted"> / {formatCount(asked)}</span>
      </td>
      <td className="number">{formatCount(rejected)}</td>
      <td className="number">{formatCount(missed)}</td>
      <td className="number">{formatBytes(bytes)}</td>
      <td className="number">{seconds === undefined ? '–' : formatSeconds(seconds)}</td>
      <td className="number">{loss === undefined ? '–' : formatLoss(loss)}</td>
      <td className="nowrap">
        {participant && (
          <time dateTime={participant.seen_at} title={formatTime(participant.seen_at)}>
            {formatAgo(participant.seen_at, now)}
          </time>
        )}
      </td>
    </tr>
  )
}

/** The participant's state, its part in the newest round, and its problems. */
function StateAndProblems({
  summary: { participant, online, behind, lastState, refused, lastRound },
}: {
  summary: ParticipantSummary
}) {
  const state = participant === undefined ? 'simulated' : participant.state
  const reason = participant?.revocation_reason ?? null
  return (
    <>
      <span className="participant-state">
        {state === 'active' ? <StateChip state={online ? 'online' : 'quiet'} /> : <StateChip state={state} />}
        {lastState !== undefined && lastState !== 'accepted' && (
          <span className="muted small">{`${STATE_LABELS[lastState]} in round ${lastRound ?? 0}`}</span>
        )}
      </span>
      {reason !== null && <span className="row-error">{reason}</span>}
      {behind !== undefined && <span className="row-warning">{behind}</span>}
      {refused !== undefined && (
        <span className={refused.round === lastRound ? 'row-error' : 'row-past muted small'}>
          refused in round {refused.round}: <code>{refused.reasons}</code>
        </span>
      )}
    </>
  )
}

interface DecisionProps {
  id: string
  participant: Participant
  onDialog: DialogWatcher
}

/** Approves or refuses a participant that waits for approval. */
function ApprovalButtons({ id, participant, onDialog }: DecisionProps) {
  const changes = experimentKey(id)
  const toasted = `Approving ${participant.display_name}`
  const approve = useAction(() => approveParticipant(id, participant), { changes, toasted })
  const refuse = useAction((form: FormData) => refuseParticipant(id, participant, reasonOf(form)), { changes })
  return (
    <span className="approval">
      <button type="button" className="button primary" disabled={approve.pending} onClick={() => void approve.run()}>
        Approve
      </button>
      <ActionDialog
        label="Refuse"
        confirm="Refuse it"
        title={`Refuse “${participant.display_name}”?`}
        dismiss="Not now"
        danger
        pending={refuse.pending}
        problem={refuse.problem}
        onDialog={onDialog}
        onSubmit={refuse.run}
      >
        <p>The participant does not take part, and its place is free for another one. This cannot be undone.</p>
        <Field label="Reason, shown to the participant">
          <input name="reason" maxLength={500} />
        </Field>
      </ActionDialog>
    </span>
  )
}

/** Revokes a participant that takes part. */
function RevokeButton({ id, participant, onDialog }: DecisionProps) {
  const revoke = useAction((form: FormData) => revokeParticipant(id, participant, reasonOf(form)), {
    changes: experimentKey(id),
  })
  return (
    <ActionDialog
      label="Revoke"
      confirm="Revoke it"
      title={`Revoke “${participant.display_name}”?`}
      dismiss="Keep it"
      danger
      pending={revoke.pending}
      problem={revoke.problem}
      onDialog={onDialog}
      onSubmit={revoke.run}
    >
      <p>
        Its next request is refused, and rounds continue without it. Accepted contributions stay. This cannot be undone.
      </p>
      <Field label="Reason, shown to the participant">
        <input name="reason" maxLength={500} />
      </Field>
    </ActionDialog>
  )
}

/** The reason in a form; null if it is empty. */
function reasonOf(form: FormData): string | null {
  const text = form.get('reason')
  return typeof text === 'string' && text.trim() !== '' ? text : null
}
