import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import type { Enrolment, Experiment } from '@/api/types'
import { InviteButton, NewCode } from '@/features/experiment/participation/invite-button'
import { capitalised, formatAgo, formatTime } from '@/lib/format'
import { Notice } from '@/lib/ui/notice'
import { useNow } from '@/lib/ui/relative-time'

/** Shows why an unfinished experiment makes no progress, and the next step; and a code that was created here. */
export function StallNotice({ experiment }: { experiment: Experiment }) {
  const [made, setMade] = useState<Enrolment>()
  return (
    <>
      <Reason experiment={experiment} onMade={setMade} />
      {/* The code is shown once, so it stays when the reason goes. */}
      {made && <NewCode code={made} />}
    </>
  )
}

interface Props {
  experiment: Experiment
  onMade: (code: Enrolment) => void
}

function Reason({ experiment, onMade }: Props) {
  const { state, stalled } = experiment
  const now = useNow(10_000)
  const reads = onlyReads(useQuery(meQuery).data)
  if (state === 'paused') {
    return (
      <Notice title="Paused" testId="paused">
        <p>No work is handed out, and the open round keeps its remaining time. Accepted contributions are kept.</p>
        {reads === false && (
          <p>
            <strong>What to do next:</strong> press Resume to continue where it stopped.
          </p>
        )}
      </Notice>
    )
  }
  if (!stalled) return null
  return (
    <Notice title="No progress" testId="stalled">
      <p>{capitalised(stalled.detail)}.</p>
      {stalled.code === 'participants.missing' && <Invitation id={experiment.id} onMade={onMade} />}
      <p className="muted small">
        <code>{stalled.code}</code>
        {' · since '}
        <time dateTime={stalled.since} title={formatTime(stalled.since)}>
          {formatAgo(stalled.since, now)}
        </time>
        {' · it continues by itself once this is fixed'}
      </p>
    </Notice>
  )
}

/** A button that invites a participant, for researchers. */
function Invitation({ id, onMade }: { id: string; onMade: (code: Enrolment) => void }) {
  const reads = onlyReads(useQuery(meQuery).data)
  return reads === false && <InviteButton id={id} onMade={onMade} />
}
