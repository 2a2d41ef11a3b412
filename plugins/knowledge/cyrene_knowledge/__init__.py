"""A plugin that indexes folders of documents and searches them, in Chinese and English."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from cyrene_knowledge.answers import FOLDERS, HITS, OUTCOME, counts_answer, hits_answer, outcome_answer
from cyrene_knowledge.folders import Folders
from cyrene_knowledge.run import IndexRun, Outcome
from cyrene_knowledge.store import Store
from cyrene_knowledge.words import expression
from cyrene_sdk import (
    ArgumentError,
    BasePlugin,
    HostAPI,
    PluginConfig,
    PluginMetadata,
    Report,
    ToolFailure,
    ToolResult,
    complex_tool,
    tool,
)

__all__ = ["KnowledgePlugin", "KnowledgeSettings"]

MAX_QUERY = 500
MAX_HITS = 20
MAX_RUN_MS = 3_600_000
STOP_S = 1.0
"""How long a run that was told to stop is waited for; it looks at every file, page and tag."""


class KnowledgeSettings(BaseModel):
    """The configuration of the plugin's entry."""

    model_config = ConfigDict(extra="forbid")

    folders: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="the folders that may be indexed, with all below them; relative ones start beside plugins.json",
    )


class KnowledgePlugin(BasePlugin):
    """Indexes documents, and finds what stands in them."""

    meta = PluginMetadata(
        name="knowledge",
        display_name="知识库",
        version="1.0.0",
        author="Cyrene",
        description="知识库：为文档建立索引，并用中文或英文检索",
        license="MIT",
        keywords=["search", "documents", "知识库", "检索"],
        category="knowledge",
    )
    config = KnowledgeSettings
    settings: KnowledgeSettings

    def init(self, config: PluginConfig) -> None:
        """Take the allowed folders."""
        self._folders = Folders(self.settings.folders, config.folder)
        self._runs: dict[asyncio.Future[Outcome], IndexRun] = {}

    def start(self, host: HostAPI) -> None:
        """Know where the index is; it is opened when it is needed."""
        self._store = Store(host.data_dir, host.logger)

    async def stop(self) -> None:
        """Have every run end."""
        for run in self._runs.values():
            run.stop()
        if self._runs:
            await asyncio.wait(self._runs, timeout=STOP_S)

    @complex_tool(
        display_name="建立索引",
        category="knowledge",
        danger_level="low",
        idempotent=True,
        timeout_ms=MAX_RUN_MS,
        triggers=[
            "把 docs 文件夹加入知识库",
            "给我的文档建立索引",
            "更新一下知识库",
            "重新索引文档目录",
            "index the docs folder",
            "add my documents to the knowledge base",
            "update the document index",
        ],
        not_when=[
            "指数基金是什么",
            "数据库索引怎么建",
            "在知识库里找一下报销流程",
            "what is a database index",
            "how is the stock index today",
            "search the docs for timeouts",
        ],
        examples=[{"folder": "docs"}, {}],
        returns=OUTCOME,
    )
    async def index(
        self,
        report: Report,
        folder: Annotated[Path | None, "要索引的文件夹，例如 docs；不填则为全部允许的文件夹"] = None,
    ) -> ToolResult:
        """为文件夹中的文档（文本、Markdown、HTML、PDF）建立或更新索引，之后可用 search 检索。

        当用户要求建立、更新索引或把文件夹加入知识库时调用；查找内容用 search。
        只读有改动的文件，可随时取消，再次调用即继续。
        """
        folders = await asyncio.to_thread(self._folders.chosen, folder)
        self._refuse_running(folders)
        run = IndexRun(folders, self._store, report)
        work = asyncio.ensure_future(asyncio.to_thread(run))
        self._runs[work] = run
        work.add_done_callback(self._forget_run)
        try:
            outcome = await asyncio.shield(work)
        except asyncio.CancelledError:
            run.stop()
            await asyncio.wait((work,), timeout=STOP_S)
            raise
        return outcome_answer(outcome, folders, self._folders)

    @tool(
        display_name="检索知识库",
        category="knowledge",
        danger_level="low",
        read_only=True,
        idempotent=True,
        triggers=[
            "在知识库里找一下报销流程",
            "查一下文档里怎么写插件",
            "我的资料里有没有提到退款",
            "文档里关于超时是怎么说的",
            "search the docs for timeouts",
            "what do my documents say about refunds",
            "look up restarts in the knowledge base",
        ],
        not_when=[
            "帮我上网搜一下今天的新闻",
            "找一家附近的餐厅",
            "知识库是什么意思",
            "search the web for news",
            "find a restaurant nearby",
            "what is a knowledge base",
        ],
        examples=[{"query": "怎么写插件"}, {"query": "restart after a crash", "limit": 3}],
        returns=HITS,
    )
    def search(
        self,
        query: Annotated[
            str, Field(description="要找的内容，中文或英文的词或问题", min_length=1, max_length=MAX_QUERY)
        ],
        limit: Annotated[int, Field(description="最多返回几条", ge=1, le=MAX_HITS)] = 5,
    ) -> ToolResult:
        """在已索引的文档中检索，返回最相关的片段及其文件、标题或页码；匹配的词在 «» 中。

        当用户问自己的文档、资料或知识库里有什么时调用；上网搜索或一般常识不要调用。
        """
        words = expression(query)
        if not words:
            raise ArgumentError("the query has no word to search for", path="/query")
        allowed = self._folders.allowed
        with self._store.opened() as index:
            hits = index.search(words, allowed, limit)
            is_empty = not hits and not any(index.counts(folder).files for folder in allowed)
        return hits_answer(hits, query, self._folders, is_empty=is_empty)

    @tool(
        display_name="知识库概况",
        category="knowledge",
        danger_level="low",
        read_only=True,
        idempotent=True,
        triggers=[
            "知识库里有哪些文件夹",
            "哪些文件夹可以索引",
            "知识库收录了多少文档",
            "which folders are indexed",
            "how many documents are in the knowledge base",
            "what can be indexed here",
        ],
        not_when=[
            "在知识库里找一下报销流程",
            "把 docs 文件夹加入知识库",
            "当前目录有哪些文件",
            "search the docs for timeouts",
            "index the docs folder",
            "list the files in this folder",
        ],
        examples=[{}],
        returns=FOLDERS,
    )
    def indexed(self) -> ToolResult:
        """列出可以索引的文件夹，以及各自已收录的文件数和段落数。当用户问知识库收录了什么时调用；查找内容用 search。"""
        with self._store.opened() as index:
            counts = [(folder, index.counts(folder)) for folder in self._folders.allowed]
        return counts_answer(counts, self._folders)

    @tool(
        display_name="移出知识库",
        category="knowledge",
        danger_level="medium",
        idempotent=True,
        timeout_ms=60_000,
        triggers=[
            "把 docs 从知识库里移除",
            "不要再收录 notes 文件夹",
            "忘掉 docs 文件夹的索引",
            "remove docs from the knowledge base",
            "forget the notes folder",
            "drop the index of docs",
        ],
        not_when=[
            "删除 docs 文件夹",
            "忘记我刚才说的话",
            "清空聊天记录",
            "delete the docs folder",
            "forget what I just said",
            "remove this file from disk",
        ],
        examples=[{"folder": "docs"}],
        returns={"type": "object", "properties": {"removed": {"type": "integer"}}, "required": ["removed"]},
    )
    async def forget(self, folder: Annotated[Path, "要移出索引的文件夹"]) -> ToolResult:
        """把一个文件夹的文档移出索引；磁盘上的文件不受影响。当用户要求把文件夹移出知识库时调用；删除文件不要调用。"""
        wanted = self._folders.resolved(folder)
        self._refuse_running([wanted])
        removed = await asyncio.to_thread(self._forget, wanted)
        what = "1 file is" if removed == 1 else f"{removed} files are"
        text = f"'{self._folders.shown(wanted)}': {what} no longer in the index."
        return ToolResult(success=True, output=text, data={"removed": removed})

    def _forget(self, folder: Path) -> int:
        with self._store.opened() as index:
            paths = list(index.documents([folder]))
            for path in paths:
                index.remove(path)
        return len(paths)

    def _refuse_running(self, folders: list[Path]) -> None:
        busy = [one for run in self._runs.values() for one in run.folders]
        for folder in folders:
            for other in busy:
                if folder.is_relative_to(other) or other.is_relative_to(folder):
                    raise ToolFailure(
                        f"the folder {self._folders.named([other])} is being indexed right now; wait until that ends"
                    )

    def _forget_run(self, work: asyncio.Future[Outcome]) -> None:
        del self._runs[work]
        if not work.cancelled():
            work.exception()  # told by whoever waits for it; a run that was stopped has nobody
