import { useQuery } from '@tanstack/react-query'

import { artifactsQuery } from '@/api/queries'
import { formatBytes } from '@/lib/format'
import { Command } from '@/lib/ui/command'
import { Digest } from '@/lib/ui/digest'

import { exportCommand, latestCheckpoint, LOAD_SNIPPET } from './checkpoint'

export function CheckpointSection({ id }: { id: string }) {
  const { data } = useQuery(artifactsQuery(id))
  const files = latestCheckpoint(data?.items ?? [])
  const round = files[0]?.round

  return (
    <section aria-labelledby="checkpoint">
      <header className="section-header">
        <h2 id="checkpoint">Checkpoint</h2>
        {round !== undefined && (
          <span className="muted small">{round === 0 ? 'the base model' : `after round ${round}`}</span>
        )}
      </header>
      {round === undefined ? (
        <p className="muted">No checkpoint yet: checkpoint.every in the specification says when one is written.</p>
      ) : (
        <div className="checkpoint">
          <ul className="files">
            {files.map((file) => (
              <li key={file.id}>
                <a href={file.href} download={file.name} data-testid="checkpoint-download">
                  {file.name}
                </a>
                <span className="number muted">{formatBytes(file.size)}</span>
                <Digest value={file.digest} />
              </li>
            ))}
          </ul>
          <div>
            <p className="muted small">All files into one folder, digests checked:</p>
            <Command text={exportCommand(id)} label="export command" />
            <p className="muted small">Then, with transformers:</p>
            <Command text={LOAD_SNIPPET} label="Python snippet" />
          </div>
        </div>
      )}
    </section>
  )
}
