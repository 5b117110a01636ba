import { formatAgo, formatBytes, formatCount, formatLoss, formatSeconds, formatTime } from '@/lib/format'
import { SiteName } from '@/lib/ui/site-name'
import { StateChip } from '@/lib/ui/state-chip'
import type { RowPlace } from '@/lib/ui/virtual-table'

import { ApprovalButtons, RevokeButton } from './membership-buttons'
import type { ParticipantSummary } from './participant-summary'
import { STATE_LABELS } from './participation-matrix'

interface Props {
  id: string
  summary: ParticipantSummary
  place: RowPlace
  mayDecide: boolean
  now: number
  onOpen: (name: string) => void
}

export function ParticipantRow({ id, summary, place, mayDecide, now, onOpen }: Props) {
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
        {participant?.state === 'pending' && mayDecide && <ApprovalButtons id={id} participant={participant} />}
        {participant?.state === 'active' && mayDecide && <RevokeButton id={id} participant={participant} />}
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
