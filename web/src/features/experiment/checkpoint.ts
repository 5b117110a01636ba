import type { Artifact } from '@/api/types'

/** The files of the newest checkpoint, by name. */
export function latestCheckpoint(artifacts: Artifact[]): Artifact[] {
  const files = artifacts.filter((artifact) => artifact.kind === 'checkpoint')
  const round = Math.max(...files.map((file) => file.round))
  return files.filter((file) => file.round === round).sort((a, b) => a.name.localeCompare(b.name))
}

export function exportCommand(id: string): string {
  return `ferret experiment export ${id} checkpoint`
}

/** Loads the folder that {@link exportCommand} writes. */
export const LOAD_SNIPPET = `from transformers import AutoModelForCausalLM, AutoTokenizer

model = AutoModelForCausalLM.from_pretrained("checkpoint")
tokenizer = AutoTokenizer.from_pretrained("checkpoint")`
