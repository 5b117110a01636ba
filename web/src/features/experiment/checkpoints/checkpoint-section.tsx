import { useQuery } from '@tanstack/react-query'

import { requireFile } from '@/api/client'
import { toProblem } from '@/api/problem'
import { artifactsQuery } from '@/api/queries'
import type { Artifact } from '@/api/types'
import { formatBytes } from '@/lib/format'
import { Command, ShortDigest } from '@/lib/ui/copy-button'
import { ProblemNotice } from '@/lib/ui/notice'
import { dismissToast, toastFailure } from '@/lib/ui/toasts'

import { checkpoints, exportCommand, isBest, LOAD_SNIPPET } from './checkpoint'

/** The newest checkpoint and how to use it; those before it behind their rounds. */
export function CheckpointSection({ id }: { id: string }) {
  const { data, error, isSuccess } = useQuery(artifactsQuery(id))
  const [newest, ...older] = checkpoints(data ?? [])
  return (
    <section aria-labelledby="checkpoint">
      <header className="section-header">
        <h2 id="checkpoint">Checkpoint</h2>
        {newest && (
          <span className="muted small">
            {named(newest.round)}
            {isBest(newest.files) && <span className="best">best</span>}
          </span>
        )}
      </header>
      {error && <ProblemNotice problem={toProblem(error)} />}
      {newest === undefined ? (
        isSuccess && (
          <p className="muted">
            There is no checkpoint yet. checkpoint.every in the specification sets when one is written.
          </p>
        )
      ) : (
        <div className="checkpoint">
          <div>
            <Files files={newest.files} testId="checkpoint-download" />
            {older.map(({ round, files }) => (
              <details key={round} className="older">
                <summary>
                  {named(round)}
                  {isBest(files) && <span className="best">best</span>}
                </summary>
                <Files files={files} />
              </details>
            ))}
          </div>
          <div>
            <p className="muted small">
              Export all files of the newest checkpoint into one folder and check their digests:
            </p>
            <Command text={exportCommand(id)} label="export command" />
            {older.some(({ files }) => isBest(files)) && (
              <>
                <p className="muted small">Or export the best checkpoint:</p>
                <Command text={`${exportCommand(id)} --best`} label="export command of the best" />
              </>
            )}
            <p className="muted small">Then load it with transformers:</p>
            <Command text={LOAD_SNIPPET} label="Python snippet" />
          </div>
        </div>
      )}
    </section>
  )
}

function named(round: number): string {
  return round === 0 ? 'The base model' : `After round ${round}`
}

/** Downloads a file, or shows why the server refuses it: a browser would only say that the download failed. */
async function downloadFile({ href, name }: Artifact) {
  const action = `Download of ${name}`
  try {
    await requireFile(href)
  } catch (failure) {
    toastFailure(action, toProblem(failure))
    return
  }
  dismissToast(action)
  const link = Object.assign(document.createElement('a'), { href, download: name })
  link.click()
}

function Files({ files, testId }: { files: Artifact[]; testId?: string }) {
  return (
    <ul className="files">
      {files.map((file) => (
        <li key={file.id}>
          <a
            href={file.href}
            download={file.name}
            data-testid={testId}
            onClick={(event) => {
              if (event.ctrlKey || event.metaKey || event.shiftKey) return
              event.preventDefault()
              void downloadFile(file)
            }}
          >
            {file.name}
          </a>
          <span className="number muted">{formatBytes(file.size)}</span>
          <ShortDigest value={file.digest} />
        </li>
      ))}
    </ul>
  )
}
